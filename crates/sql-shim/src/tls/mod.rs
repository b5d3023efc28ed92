//! TLS: what a connection is encrypted with.
//!
//! rustls does the work (TLS 1.2 and 1.3, forward secrecy always). The certificate is the one that `ssl_cert`
//! and `ssl_key` name, or else one of the server's own in the data directory (`certificate.rs`), so that
//! clients encrypt with no setup; to let them verify the server, give it a certificate that they can check.
//! With `ssl_ca` clients may show a certificate too, which is verified (`REQUIRE X509` asks for one).
//! [`stream`] is the state of one encrypted connection, without I/O.

mod certificate;
pub mod stream;

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rsa::RsaPublicKey;
use rsa::pkcs8::DecodePublicKey;
use rsa::traits::PublicKeyParts;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, version};

use crate::options::Origins;
use crate::variables::GlobalVariables;

/// Why clients that must encrypt could not come.
pub const NO_TLS: &str = "require-secure-transport: there is no TLS (--skip-ssl, tls-version is \
                          empty, or auto-generate-certs=OFF and there is no certificate)";
const ONE_OF_TWO: &str = "give both of ssl-cert and ssl-key, or none";

/// What TLS is served with, and a line about it for the start-up log.
pub struct Established {
    /// For each connection that asks.
    pub config: Arc<ServerConfig>,
    /// Versions and certificate.
    pub report: String,
}

/// A file of certificates or a key.
struct PemFile {
    path: PathBuf,
    /// Who names it, for messages; the server's own is named by nobody.
    named: Option<String>,
}

impl PemFile {
    fn own(path: PathBuf) -> PemFile {
        PemFile { path, named: None }
    }

    /// The one that a variable names. Relative to the data directory, as mysqld, which works there, has it.
    fn of(variable: &str, datadir: &Path, variables: &GlobalVariables, origins: &Origins) -> Option<PemFile> {
        let given = Some(variables.text(variable)).filter(|given| !given.is_empty())?;
        let named = format!("{}{}={given}", origins.before(variable), variable.replace('_', "-"));
        Some(PemFile { path: datadir.join(given), named: Some(named) })
    }

    fn about(&self, why: &dyn fmt::Display) -> String {
        let path = self.path.display().to_string();
        match &self.named {
            // What was given may be relative.
            Some(named) if named.ends_with(&format!("={path}")) => format!("{named}: {why}"),
            Some(named) => format!("{named}: {path}: {why}"),
            None => format!("{path}: {why}"),
        }
    }
}

/// Reads or makes the certificate, and sets the variables that say so. `None`: `tls_version` is empty, or
/// there is no certificate and `auto_generate_certs` is OFF.
///
/// # Errors
/// What is wrong with which file or variable; a server that was told of a certificate does not start without.
pub fn establish(datadir: &Path, variables: &GlobalVariables) -> Result<Option<Established>, String> {
    let versions = versions(&variables.text("tls_version"))?;
    if versions.is_empty() {
        return Ok(None);
    }
    // What was given has been checked, with where that was.
    let named = |name: &str| PemFile::of(name, datadir, variables, &Origins::default());
    let (certificate, key, made) = match (named("ssl_cert"), named("ssl_key")) {
        (Some(certificate), Some(key)) => (certificate, key, ""),
        (None, None) if is_without_certificate(datadir, variables)? => return Ok(None),
        (None, None) => own_certificate(datadir, variables)?,
        (Some(one), None) | (None, Some(one)) => return Err(one.about(&ONE_OF_TWO)),
    };
    let config = configure(&versions, &certificate, &key, named("ssl_ca").as_ref())?;
    warn_of_key(&key.path);
    let shown = variables.text("tls_version");
    let report = format!("{shown}, certificate {}{made}", certificate.path.display());
    for name in ["have_ssl", "have_openssl"] {
        set(variables, name, "YES")?;
    }
    Ok(Some(Established { config: Arc::new(config), report }))
}

/// What [`establish`] would refuse, before it is called and anything is made.
///
/// # Errors
/// As there; and clients that must encrypt (`require_secure_transport`) where TLS is not `offered`.
pub fn check(
    datadir: &Path,
    variables: &GlobalVariables,
    origins: &Origins,
    offered: bool,
) -> Result<(), String> {
    let versions = if offered { versions(&variables.text("tls_version"))? } else { Vec::new() };
    let named = |name: &str| PemFile::of(name, datadir, variables, origins);
    let (certificate, key, authorities) = (named("ssl_cert"), named("ssl_key"), named("ssl_ca"));
    let is_named = certificate.is_some() || key.is_some();
    let without = !versions.is_empty() && !is_named && is_without_certificate(datadir, variables)?;
    if let Some(authorities) = authorities.as_ref().filter(|_| without) {
        return Err(authorities.about(
            &"there is no certificate of the server; name one with ssl-cert and ssl-key, or do not give \
              auto-generate-certs=OFF",
        ));
    }
    if versions.is_empty() || without {
        return match variables.number("require_secure_transport") {
            0 => Ok(()),
            _ => Err(NO_TLS.to_owned()),
        };
    }
    match (certificate, key) {
        (Some(certificate), Some(key)) => {
            configure(&versions, &certificate, &key, authorities.as_ref()).map(drop)
        }
        (None, None) => authorities.map_or(Ok(()), |file| certificates(&file).map(drop)),
        (Some(one), None) | (None, Some(one)) => Err(one.about(&ONE_OF_TWO)),
    }
}

fn set(variables: &GlobalVariables, name: &str, text: &str) -> Result<(), String> {
    variables.set_at_start(name, text).map(drop).map_err(|error| error.message.into_owned())
}

/// Whether the server has no certificate of its own, and is not to make one.
fn is_without_certificate(datadir: &Path, variables: &GlobalVariables) -> Result<bool, String> {
    Ok(variables.number("auto_generate_certs") == 0 && !certificate::is_complete(datadir)?)
}

fn own_certificate(
    datadir: &Path,
    variables: &GlobalVariables,
) -> Result<(PemFile, PemFile, &'static str), String> {
    let made = certificate::provide(datadir)?;
    set(variables, "ssl_cert", certificate::CERTIFICATE_FILE)?;
    set(variables, "ssl_key", certificate::KEY_FILE)?;
    let remark = if made { " (self-signed, made now)" } else { "" };
    let own = |name| PemFile::own(datadir.join(name));
    Ok((own(certificate::CERTIFICATE_FILE), own(certificate::KEY_FILE), remark))
}

fn versions(text: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let mut versions = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        versions.push(match name {
            "TLSv1.2" => &version::TLS12,
            "TLSv1.3" => &version::TLS13,
            _ => return Err(format!("tls-version={text}: knows TLSv1.2 and TLSv1.3; empty is no TLS")),
        });
    }
    Ok(versions)
}

fn configure(
    versions: &[&'static SupportedProtocolVersion],
    certificate: &PemFile,
    key: &PemFile,
    authorities: Option<&PemFile>,
) -> Result<ServerConfig, String> {
    let provider = Arc::new(provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| format!("tls-version: {error}"))?;
    let builder = match authorities {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(file)? {
                roots.add(authority).map_err(|error| file.about(&error))?;
            }
            // Who shows none is an ordinary client; REQUIRE X509 of an account is checked at its login.
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                    .allow_unauthenticated()
                    .build();
            builder.with_client_cert_verifier(verifier.map_err(|error| file.about(&error))?)
        }
    };
    let secret = PrivateKeyDer::from_pem_file(&key.path).map_err(|error| key.about(&error))?;
    provider.key_provider.load_private_key(secret.clone_key()).map_err(|error| key.about(&error))?;
    let config = builder.with_single_cert(certificates(certificate)?, secret);
    let mut config = config.map_err(|error| {
        // The key has been loaded: it is the certificate, or that they are not of one pair.
        certificate.about(&format!("with the key {}: {error}", key.path.display()))
    })?;
    config.ignore_client_order = true;
    // A resumed session would show again a certificate that may have ended since; each handshake is whole.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// What works, and had better be otherwise.
fn warn_of_key(path: &Path) {
    let mode = std::fs::metadata(path).map_or(0, |found| found.permissions().mode());
    if mode & 0o077 != 0 {
        tracing::warn!(
            "{}: others than its owner may use this key (mode {:o})",
            path.display(),
            mode & 0o777
        );
    }
    // It was loaded a moment ago.
    let secret = PrivateKeyDer::from_pem_file(path).ok();
    let key = secret.and_then(|secret| provider().key_provider.load_private_key(secret).ok());
    let public = key.as_ref().and_then(|key| key.public_key());
    let rsa = public.and_then(|der| RsaPublicKey::from_public_key_der(der.as_ref()).ok());
    let bits = rsa.map_or(0, |key| key.size() * 8);
    if bits > 2048 {
        tracing::warn!(
            "{}: an RSA key of {bits} bits; each handshake keeps a thread that carries connections busy for \
             milliseconds. An ECDSA key takes a small part of that",
            path.display()
        );
    }
}

/// The suites of TLS 1.2 whose keys last for ever come before AES-GCM, whose keys last for 2^24 records.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider.cipher_suites.sort_by_key(|suite| match suite {
        SupportedCipherSuite::Tls13(_) => 0,
        SupportedCipherSuite::Tls12(suite) => u64::MAX - suite.common.confidentiality_limit,
    });
    provider
}

fn certificates(file: &PemFile) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(&file.path).map_err(|error| file.about(&error))?;
    let list = read.collect::<Result<Vec<_>, _>>().map_err(|error| file.about(&error))?;
    if list.is_empty() { Err(file.about(&"no certificate is in it")) } else { Ok(list) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("untorn-tls-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn error_of(outcome: Result<Option<Established>, String>) -> String {
        outcome.err().unwrap()
    }

    #[test]
    fn no_certificate_is_made_where_none_is_wanted() {
        let directory = directory("not-made");
        let variables = GlobalVariables::default();
        variables.set_at_start("auto_generate_certs", "OFF").unwrap();
        assert!(establish(&directory, &variables).unwrap().is_none());
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        let check = || check(&directory, &variables, &Origins::default(), true);
        check().unwrap();
        variables.set_at_start("require_secure_transport", "ON").unwrap();
        assert_eq!(check().unwrap_err(), NO_TLS);
        variables.set_at_start("require_secure_transport", "OFF").unwrap();
        variables.set_at_start("ssl_ca", "ca.pem").unwrap();
        assert!(check().unwrap_err().contains("auto-generate-certs"));
        variables.set_at_start("ssl_ca", "").unwrap();
        // What is there is used.
        establish(&directory, &GlobalVariables::default()).unwrap().unwrap();
        assert!(establish(&directory, &variables).unwrap().is_some());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_was_asked_for_is_served_or_the_server_does_not_start() {
        let directory = directory("settings");
        let variables = GlobalVariables::default();
        let first = establish(&directory, &variables).unwrap().unwrap();
        assert!(first.report.contains("made now"), "{}", first.report);
        assert_eq!(variables.text("have_ssl"), "YES");
        assert_eq!(variables.text("ssl_cert"), "server-cert.pem");
        let again = establish(&directory, &variables).unwrap().unwrap();
        assert!(!again.report.contains("made now"), "{}", again.report);

        let given = |name: &str, text: &str| {
            let variables = GlobalVariables::default();
            variables.set_at_start(name, text).unwrap();
            establish(&directory, &variables)
        };
        assert!(error_of(given("ssl_key", "server-key.pem")).contains("give both"));
        assert!(error_of(given("ssl_ca", "no-such.pem")).contains("no-such.pem"));
        assert!(error_of(given("ssl_ca", "server-key.pem")).contains("no certificate"));
        assert!(error_of(given("tls_version", "TLSv1.1,TLSv1.2")).contains("TLSv1.3"));
        assert!(given("tls_version", "").unwrap().is_none());
        assert!(given("tls_version", "TLSv1.3").unwrap().is_some());
        assert!(given("ssl_ca", "server-cert.pem").unwrap().is_some());

        let other = self::directory("other");
        establish(&other, &GlobalVariables::default()).unwrap().unwrap();
        variables.set_at_start("ssl_key", other.join("server-key.pem").to_str().unwrap()).unwrap();
        let error = error_of(establish(&directory, &variables));
        assert!(error.contains("server-cert.pem") && error.contains(other.to_str().unwrap()), "{error}");
        let unusable = other.join("unusable.pem");
        let pem = "-----BEGIN PRIVATE KEY-----\nMAMCAQA=\n-----END PRIVATE KEY-----\n";
        std::fs::write(&unusable, pem).unwrap();
        variables.set_at_start("ssl_key", unusable.to_str().unwrap()).unwrap();
        let error = error_of(establish(&directory, &variables));
        assert!(error.starts_with(&format!("ssl-key={}: ", unusable.display())), "{error}");
        std::fs::remove_dir_all(&directory).unwrap();
        std::fs::remove_dir_all(&other).unwrap();
    }
}
