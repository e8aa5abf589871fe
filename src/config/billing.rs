//! How a home pays and at which prices: what the user says, else what the
//! home's sign-in means.

use std::fmt;

use serde::Deserialize;

use super::gemini::CliSettings;
use super::homes::Home;
use crate::ledger::money::{Billing, PriceList};

/// `billing` of a home in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BillingChoice {
    /// By the home's sign-in.
    #[default]
    Auto,
    Metered,
    Seat,
}

/// `price_list` of a home in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListChoice {
    /// By the home's sign-in.
    #[default]
    Auto,
    GeminiApi,
    VertexAi,
}

/// What the configuration says about a home's money.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomeBilling {
    pub billing: BillingChoice,
    pub price_list: ListChoice,
    /// Labels for whoever shares costs out.
    pub team: Option<String>,
    pub cost_center: Option<String>,
}

/// How a home pays, with nothing left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pricing {
    pub billing: Billing,
    pub list: PriceList,
}

impl Home {
    /// How this home pays. What is left to the sign-in is looked up in the
    /// CLI's settings, each time: a home may sign in another way tomorrow.
    #[must_use]
    pub fn pricing(&self) -> Pricing {
        self.said.complete().unwrap_or_else(|| {
            let sign_in = CliSettings::of_home(&self.path).auth_type();
            self.said.over(of_sign_in(sign_in.as_deref()))
        })
    }
}

impl HomeBilling {
    fn billing(&self) -> Option<Billing> {
        match self.billing {
            BillingChoice::Auto => None,
            BillingChoice::Metered => Some(Billing::Metered),
            BillingChoice::Seat => Some(Billing::Seat),
        }
    }

    fn list(&self) -> Option<PriceList> {
        match self.price_list {
            ListChoice::Auto => None,
            ListChoice::GeminiApi => Some(PriceList::GeminiApi),
            ListChoice::VertexAi => Some(PriceList::VertexAi),
        }
    }

    /// What is said, where nothing is left open.
    fn complete(&self) -> Option<Pricing> {
        Some(Pricing { billing: self.billing()?, list: self.list()? })
    }

    /// What is said, and the rest from elsewhere.
    fn over(&self, other: Pricing) -> Pricing {
        Pricing { billing: self.billing().unwrap_or(other.billing), list: self.list().unwrap_or(other.list) }
    }

    /// What is said here, and what is left open from another entry of the home.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            billing: if self.billing == BillingChoice::Auto { other.billing } else { self.billing },
            price_list: if self.price_list == ListChoice::Auto { other.price_list } else { self.price_list },
            team: self.team.or(other.team),
            cost_center: self.cost_center.or(other.cost_center),
        }
    }
}

/// What a sign-in means, by its name in the CLI's settings. Who signs in with
/// Google, or as the machine, has a Code Assist seat; a key or a project pays
/// by the token. What a gateway charges nobody here knows.
fn of_sign_in(auth_type: Option<&str>) -> Pricing {
    let (billing, list) = match auth_type {
        Some("oauth-personal" | "compute-default-credentials" | "cloud-shell") => {
            (Billing::Seat, PriceList::GeminiApi)
        }
        Some("gemini-api-key") => (Billing::Metered, PriceList::GeminiApi),
        Some("vertex-ai") => (Billing::Metered, PriceList::VertexAi),
        _ => (Billing::Unknown, PriceList::GeminiApi),
    };
    Pricing { billing, list }
}

/// `metered, vertex-ai`
impl fmt::Display for Pricing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.billing.as_str(), self.list.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pricing(settings: &str, said: HomeBilling) -> String {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".gemini")).unwrap();
        std::fs::write(dir.path().join(".gemini/settings.json"), settings).unwrap();
        let home = Home { path: dir.path().to_owned(), name: "ana".into(), named: false, said };
        home.pricing().to_string()
    }

    #[test]
    fn the_sign_in_decides_what_nobody_says() {
        for (sign_in, want) in [
            ("gemini-api-key", "metered, gemini-api"),
            ("vertex-ai", "metered, vertex-ai"),
            ("oauth-personal", "seat, gemini-api"),
            ("compute-default-credentials", "seat, gemini-api"),
            ("gateway", "unknown, gemini-api"),
            ("something-new", "unknown, gemini-api"),
        ] {
            let settings = format!(r#"{{"security":{{"auth":{{"selectedType":"{sign_in}"}}}}}}"#);
            assert_eq!(pricing(&settings, HomeBilling::default()), want, "{sign_in}");
        }
        assert_eq!(pricing("{torn", HomeBilling::default()), "unknown, gemini-api");
    }

    #[test]
    fn what_is_said_goes_before_the_sign_in() {
        let vertex = r#"{"security":{"auth":{"selectedType":"vertex-ai"}}}"#;
        let seat = HomeBilling { billing: BillingChoice::Seat, ..HomeBilling::default() };
        assert_eq!(pricing(vertex, seat.clone()), "seat, vertex-ai");
        assert_eq!(
            pricing(vertex, HomeBilling { price_list: ListChoice::GeminiApi, ..seat }),
            "seat, gemini-api"
        );
    }
}
