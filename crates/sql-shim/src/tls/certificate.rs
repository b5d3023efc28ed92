//! The certificate that the server makes for itself: self-signed, in the data directory, under mysqld's
//! names.
//!
//! It encrypts; it proves nothing to a client that has not seen it before. It effectively never
//! expires: a certificate nobody asked for must not one day start refusing logins.

use std::path::Path;

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use crate::private_file;

/// Its name in the data directory.
pub(super) const CERTIFICATE_FILE: &str = "server-cert.pem";
/// The name of its key.
pub(super) const KEY_FILE: &str = "server-key.pem";

const SUBJECT: &str = "untorn auto-generated server certificate";

/// Makes what is missing of key and certificate; true if anything was. The key comes first: after a crash
/// between the two, the next start makes the certificate of that key.
pub(super) fn provide(datadir: &Path) -> Result<bool, String> {
    let (certificate_path, key_path) = (datadir.join(CERTIFICATE_FILE), datadir.join(KEY_FILE));
    let has_key = is_there(&key_path)?;
    if is_there(&certificate_path)? {
        // Who put it there has lost the key; another certificate in its place could surprise clients.
        let missing = format!("{} is missing, and {CERTIFICATE_FILE} is there", key_path.display());
        return if has_key { Ok(false) } else { Err(missing) };
    }
    let failed = |error: rcgen::Error| format!("cannot make a certificate: {error}");
    let key = if has_key {
        let text = std::fs::read_to_string(&key_path);
        let text = text.map_err(|error| format!("{}: {error}", key_path.display()))?;
        KeyPair::from_pem(&text).map_err(|error| format!("{}: {error}", key_path.display()))?
    } else {
        let key = KeyPair::generate().map_err(failed)?;
        write(&key_path, &key.serialize_pem(), 0o600)?;
        key
    };
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, SUBJECT);
    let certificate = params.self_signed(&key).map_err(failed)?;
    // Everybody may read it: clients verify with it.
    write(&certificate_path, &certificate.pem(), 0o644)?;
    Ok(true)
}

/// Whether nothing has to be made.
pub(super) fn is_complete(datadir: &Path) -> Result<bool, String> {
    Ok(is_there(&datadir.join(CERTIFICATE_FILE))? && is_there(&datadir.join(KEY_FILE))?)
}

/// A link that leads nowhere is an error: what somebody keeps elsewhere is not made again.
fn is_there(path: &Path) -> Result<bool, String> {
    let about = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(about(&error)),
        Ok(_) if path.try_exists().map_err(|error| about(&error))? => Ok(true),
        Ok(_) => Err(about(&"a link to a file that is not there")),
    }
}

fn write(path: &Path, pem: &str, mode: u32) -> Result<(), String> {
    let outcome = private_file::replace_with_mode(path, pem.as_bytes(), mode);
    outcome.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_kept_and_nobody_else_reads_it() {
        let directory = std::env::temp_dir().join(format!("untorn-certificate-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (key, certificate) = (directory.join(KEY_FILE), directory.join(CERTIFICATE_FILE));
        assert!(provide(&directory).unwrap());
        assert!(!provide(&directory).unwrap());
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&certificate).unwrap().permissions().mode() & 0o777, 0o644);
        let before = std::fs::read(&key).unwrap();
        std::fs::remove_file(&certificate).unwrap();
        assert!(provide(&directory).unwrap());
        assert_eq!(std::fs::read(&key).unwrap(), before, "the key was there already");
        std::fs::remove_file(&key).unwrap();
        assert!(provide(&directory).unwrap_err().contains(KEY_FILE));
        std::fs::remove_file(&certificate).unwrap();
        for path in [&key, &certificate] {
            std::os::unix::fs::symlink("/nowhere/at/all", path).unwrap();
            let error = provide(&directory).unwrap_err();
            assert!(error.contains(path.to_str().unwrap()) && error.contains("link"), "{error}");
            std::fs::remove_file(path).unwrap();
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
