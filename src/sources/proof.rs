//! Proof by content that a file still is what was read (architecture, house
//! rule 2): inodes are handed out again at once.

use std::fs::File;
use std::io;

use super::journal::lines::read_at;
use crate::ledger::hash::fnv1a;

/// How many bytes prove continuity, at the head and before the offset.
pub(super) const PROOF: u64 = 256;

/// The hash of `len` bytes at `offset`, and how many could be read.
///
/// # Errors
/// What reading the file says.
pub(super) fn proof(file: &File, offset: u64, len: u64) -> io::Result<(u64, u16)> {
    let mut bytes = [0; PROOF as usize];
    let wanted = usize::try_from(len.min(PROOF)).unwrap_or(0);
    let mut have = 0;
    while have < wanted {
        match read_at(file, &mut bytes[have..wanted], offset + have as u64)? {
            0 => break,
            read => have += read,
        }
    }
    let have_len = u16::try_from(have).expect("a proof is at most 256 bytes");
    Ok((if have == 0 { 0 } else { fnv1a(&bytes[..have]) }, have_len))
}
