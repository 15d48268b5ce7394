//! A token that outlives its server. Whoever can read the file can read the traces, so one that
//! others can read is refused.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::access::secret;
use crate::exit_status::Failure;
use crate::io::trace_files::shown;

/// The fewest characters of a token that is not easily guessed, and the most.
const FEWEST: usize = 16;
const MOST: usize = 256;

/// The token in a file, which is made if it is not there.
pub(super) fn token(path: &Path) -> Result<String, Failure> {
    let name = shown(path);
    let trouble = |reason: &str| Failure::Trouble(format!("--token-file {name}: {reason}"));
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let token = secret()?;
            writeln!(file, "{token}")
                .map_err(|error| trouble(&format!("it cannot be written: {error}")))?;
            Ok(token)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path, &trouble),
        Err(error) => Err(trouble(&format!("it cannot be made: {error}"))),
    }
}

fn read(path: &Path, trouble: &dyn Fn(&str) -> Failure) -> Result<String, Failure> {
    let cannot = |error: io::Error| trouble(&format!("it cannot be read: {error}"));
    let file = File::open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if !metadata.is_file() {
        return Err(trouble("it is not a file"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(trouble(
            "others can read or write it; chmod 600 it, or remove it for a new one",
        ));
    }
    let mut text = String::new();
    // A line more than allowed is too long as well.
    file.take(2 * MOST as u64).read_to_string(&mut text).map_err(cannot)?;
    let token = text.trim();
    let is_token = (FEWEST..=MOST).contains(&token.len())
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !is_token {
        return Err(trouble(&format!(
            "it holds no token, {FEWEST} to {MOST} letters and digits; remove it for a new one"
        )));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_stays_and_is_for_its_owner_only() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("token");
        let first = token(&path).unwrap();
        assert_eq!(first.len(), 32);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(token(&path).unwrap(), first);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert!(token(&path).unwrap_err().message().unwrap().contains("chmod 600"));
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        for text in ["", "short", "0123456789abcdef&x=1", &"x".repeat(300)] {
            fs::write(&path, text).unwrap();
            assert!(token(&path).unwrap_err().message().unwrap().contains("no token"), "{text}");
        }
        assert!(token(place.path()).is_err());
    }
}
