//! The capacity of the redo log by the settings that MySQL had before `innodb_redo_log_capacity`:
//! `innodb_log_file_size` times `innodb_log_files_in_group`. It counts where the capacity itself is not
//! given.

use super::OptionError;
use super::arguments::Setting;
use super::without_effect::shown;
use crate::variables::value::parse_size;

/// How many files MySQL has where the number is not given.
const FILES: u64 = 2;
const FILE_SIZE: &str = "innodb_log_file_size";
const FILES_IN_GROUP: &str = "innodb_log_files_in_group";

/// What was given of the two, the last of each.
#[derive(Default)]
pub struct LogFiles {
    size: Option<(u64, Setting)>,
    files: Option<(u64, Setting)>,
}

impl LogFiles {
    /// Keeps a setting if it is one of the two, and says whether it is.
    pub fn take(&mut self, setting: &Setting, name: &str) -> Result<bool, OptionError> {
        let slot = match name {
            FILE_SIZE => &mut self.size,
            FILES_IN_GROUP => &mut self.files,
            _ => return Ok(false),
        };
        let origin = &setting.origin;
        let Some(text) = &setting.value else {
            return Err(OptionError(format!("{origin}: option --{name} needs a value")));
        };
        let number = parse_size(text).filter(|number| *number > 0);
        let Some(number) = number else {
            return Err(OptionError(format!(
                "{origin}: Variable '{name}' can't be set to the value of '{text}'; give a whole number, for \
                 sizes also with K, M or G"
            )));
        };
        *slot = Some((number, setting.clone()));
        Ok(true)
    }

    /// The capacity that they ask for, and by what.
    pub fn capacity(&self) -> Option<(u64, String)> {
        let (size, of_size) = self.size.as_ref()?;
        let (files, of_files) = match &self.files {
            Some((files, setting)) => (*files, shown(setting)),
            None => (FILES, format!("{FILES} files, as in MySQL")),
        };
        Some((size.saturating_mul(files), format!("{} × {of_files}", shown(of_size))))
    }

    /// What is given without effect, by its name, where the capacity itself `is_given` or not.
    pub fn warnings(&self, is_given: bool) -> Vec<(&'static str, String)> {
        let in_vain = |name, given: &Option<(u64, Setting)>, why| {
            let (_, setting) = given.as_ref()?;
            Some((name, format!("{}: {} has no effect: {why}", setting.origin, shown(setting))))
        };
        let is_set = "innodb_redo_log_capacity is given";
        let warnings = match (is_given, &self.size) {
            (true, _) => {
                [in_vain(FILE_SIZE, &self.size, is_set), in_vain(FILES_IN_GROUP, &self.files, is_set)]
            }
            (false, None) => {
                let why = "it counts together with innodb_log_file_size only";
                [None, in_vain(FILES_IN_GROUP, &self.files, why)]
            }
            (false, Some(_)) => [None, None],
        };
        warnings.into_iter().flatten().collect()
    }
}
