//! A thin wrapper of `disk::retry`, which drives the steps of the crates below.

use disk::Interrupted;

use crate::error::Error;

/// [`disk::retry`] with this crate's errors.
pub(crate) async fn retry<T, I>(step: impl FnMut() -> Result<T, I>) -> Result<T, Error>
where
    I: Interrupted,
    Error: From<I::Error>,
{
    Ok(disk::retry(step).await?)
}
