//! What an exporter is told, in the form it speaks: an
//! `ExportLogsServiceResponse`, or a `Status` with the code of gRPC.

use serde_json::json;

use super::Refusal;

/// What is said of records that could not be read.
const REJECTED: &str = "these records state something other than they must";

/// The two forms of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Protobuf,
}

impl Form {
    /// As `Content-Type` names it.
    pub(super) fn of_content_type(value: &[u8]) -> Option<Self> {
        let name = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match () {
            () if is("application/json") => Some(Self::Json),
            () if is("application/x-protobuf") => Some(Self::Protobuf),
            () => None,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/x-protobuf",
        }
    }

    /// It was taken, but for this many records.
    pub(super) fn taken(self, rejected: u64) -> Vec<u8> {
        match (self, rejected) {
            (Self::Json, 0) => b"{}".to_vec(),
            (Self::Protobuf, 0) => Vec::new(),
            (Self::Json, _) => {
                let partial = json!({"rejectedLogRecords": rejected.to_string(), "errorMessage": REJECTED});
                json!({"partialSuccess": partial}).to_string().into_bytes()
            }
            (Self::Protobuf, _) => {
                let mut partial = Vec::new();
                number(1, rejected, &mut partial);
                bytes(2, REJECTED.as_bytes(), &mut partial);
                let mut response = Vec::new();
                bytes(1, &partial, &mut response);
                response
            }
        }
    }

    /// It was not taken.
    pub(super) fn refused(self, refusal: Refusal) -> Vec<u8> {
        let (code, message) = (grpc_code(refusal), message(refusal));
        match self {
            Self::Json => json!({"code": code, "message": message}).to_string().into_bytes(),
            Self::Protobuf => {
                let mut status = Vec::new();
                number(1, code, &mut status);
                bytes(2, message.as_bytes(), &mut status);
                status
            }
        }
    }
}

/// The code of gRPC. Exporters come again after 4 and 14.
pub(super) fn grpc_code(refusal: Refusal) -> u64 {
    match refusal {
        Refusal::Undecodable => 3,
        Refusal::TooLarge => 8,
        Refusal::UnsupportedType => 12,
        Refusal::Incomplete => 4,
        Refusal::Busy => 14,
    }
}

/// In ASCII, as a header of gRPC carries it.
pub(super) fn message(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Undecodable => "the body is no ExportLogsServiceRequest of the type it says",
        Refusal::TooLarge => "the body is larger than 16777216 bytes, as it came or unpacked",
        Refusal::UnsupportedType => {
            "send application/json or application/x-protobuf, plain or with Content-Encoding gzip"
        }
        Refusal::Incomplete => "the body did not arrive to its end in time",
        Refusal::Busy => "the ledger is behind: come again",
    }
}

fn number(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3, out);
    varint(value, out);
}

fn bytes(field: u64, value: &[u8], out: &mut Vec<u8>) {
    varint(field << 3 | 2, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
