//! How countries write large numbers, for FORMAT.

/// Marks of a number: before the fraction, and between groups of digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locale {
    point: char,
    separator: Option<char>,
    /// Digits of the groups behind the first three.
    group: usize,
}

const COMMA_AND_POINT: &str = "ar_AE ar_BH ar_DZ ar_EG ar_IN en_AU en_CA en_GB en_NZ en_PH en_US en_ZA en_ZW \
    es_DO es_GT es_HN es_MX es_NI es_PA es_PE es_PR es_SV es_US gu_IN he_IL hi_IN ja_JP ko_KR ms_MY th_TH \
    ur_PK zh_CN zh_HK zh_TW";
const NOTHING_AND_POINT: &str = "ar_SA sr_RS";
const POINT_AND_COMMA: &str = "be_BY da_DK de_BE de_DE de_LU es_AR es_BO es_CL es_CO es_EC es_ES es_PY es_UY \
    es_VE fo_FO hu_HU id_ID is_IS lt_LT mn_MN nb_NO no_NO ro_RO ru_UA sq_AL tr_TR uk_UA vi_VN";
const NOTHING_AND_COMMA: &str = "ca_ES de_AT el_GR eu_ES fr_BE fr_CA fr_CH fr_FR fr_LU gl_ES hr_HR it_IT nl_BE \
    nl_NL pl_PL pt_BR pt_PT sl_SI";
const SPACE_AND_COMMA: &str = "cs_CZ es_CR et_EE fi_FI lv_LV mk_MK ru_RU sk_SK sv_FI sv_SE";

const fn locale(separator: Option<char>, point: char) -> Locale {
    Locale { point, separator, group: 3 }
}

impl Locale {
    /// `en_US`.
    pub const DEFAULT: Locale = locale(Some(','), '.');

    /// The one of this name, in any letter case.
    pub fn of_name(name: &str) -> Option<Locale> {
        let among = |list: &str| list.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(name));
        Some(match name.to_ascii_lowercase().as_str() {
            _ if among(COMMA_AND_POINT) => Locale::DEFAULT,
            _ if among(NOTHING_AND_POINT) => locale(None, '.'),
            _ if among(POINT_AND_COMMA) => locale(Some('.'), ','),
            _ if among(NOTHING_AND_COMMA) => locale(None, ','),
            _ if among(SPACE_AND_COMMA) => locale(Some(' '), ','),
            "bg_bg" => locale(Some('\0'), ','),
            "de_ch" => locale(Some('\''), '.'),
            "it_ch" | "rm_ch" => locale(Some('\''), ','),
            "en_in" | "ta_in" | "te_in" => Locale { group: 2, ..Locale::DEFAULT },
            _ => return None,
        })
    }

    /// A number of plain digits with these marks.
    pub fn grouped(&self, number: &str) -> String {
        let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
        let (whole, fraction) = rest.split_once('.').map_or((rest, None), |(w, f)| (w, Some(f)));
        let mut result = sign.to_owned();
        for (index, digit) in whole.chars().enumerate() {
            let left = whole.len() - index;
            let begins = left == 3 || left > 3 && (left - 3).is_multiple_of(self.group);
            if index > 0
                && begins
                && let Some(separator) = self.separator
            {
                result.push(separator);
            }
            result.push(digit);
        }
        if let Some(fraction) = fraction {
            result.push(self.point);
            result.push_str(fraction);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_digits() {
        for (name, wanted) in [
            ("en_US", "-1,234,567.50"),
            ("DE_de", "-1.234.567,50"),
            ("fr_FR", "-1234567,50"),
            ("ru_RU", "-1 234 567,50"),
            ("de_CH", "-1'234'567.50"),
            ("en_IN", "-12,34,567.50"),
        ] {
            let shown = Locale::of_name(name).map(|locale| locale.grouped("-1234567.50"));
            assert_eq!(shown.as_deref(), Some(wanted), "{name}");
        }
        assert_eq!(Locale::of_name("xx"), None);
    }
}
