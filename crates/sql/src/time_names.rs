//! Names of months and days by `lc_time_names`, as MySQL has them: of the languages that are used most.

/// Names in one language.
#[derive(Debug, PartialEq, Eq)]
pub struct TimeNames {
    /// The locales that have them, the most known one first.
    locales: &'static str,
    /// From January on; `|` between them, here and in the others.
    months: &'static str,
    months_short: &'static str,
    /// From Monday on.
    days: &'static str,
    days_short: &'static str,
}

/// The first is the default.
static ALL: [TimeNames; 18] = [
    TimeNames {
        locales: "en_US en_AU en_CA en_GB en_IN en_NZ en_PH en_ZA en_ZW",
        months: "January|February|March|April|May|June|July|August|September|October|November|December",
        months_short: "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec",
        days: "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
        days_short: "Mon|Tue|Wed|Thu|Fri|Sat|Sun",
    },
    TimeNames {
        locales: "de_DE de_BE de_CH de_LU",
        months: "Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
        months_short: "Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez",
        days: "Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag",
        days_short: "Mo|Di|Mi|Do|Fr|Sa|So",
    },
    TimeNames {
        locales: "de_AT",
        months: "Jänner|Feber|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
        months_short: "Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez",
        days: "Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag",
        days_short: "Mon|Die|Mit|Don|Fre|Sam|Son",
    },
    TimeNames {
        locales: "fr_FR fr_BE fr_CA fr_CH fr_LU",
        months: "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre",
        months_short: "jan|fév|mar|avr|mai|jun|jui|aoû|sep|oct|nov|déc",
        days: "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche",
        days_short: "lun|mar|mer|jeu|ven|sam|dim",
    },
    TimeNames {
        locales: "es_ES es_AR es_BO es_CL es_CO es_CR es_DO es_EC es_GT es_HN es_MX es_NI es_PA es_PE \
            es_PR es_PY es_SV es_US es_UY es_VE",
        months: "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre",
        months_short: "ene|feb|mar|abr|may|jun|jul|ago|sep|oct|nov|dic",
        days: "lunes|martes|miércoles|jueves|viernes|sábado|domingo",
        days_short: "lun|mar|mié|jue|vie|sáb|dom",
    },
    TimeNames {
        locales: "it_IT it_CH",
        months: "gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre",
        months_short: "gen|feb|mar|apr|mag|giu|lug|ago|set|ott|nov|dic",
        days: "lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica",
        days_short: "lun|mar|mer|gio|ven|sab|dom",
    },
    TimeNames {
        locales: "nl_NL nl_BE",
        months: "januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december",
        months_short: "jan|feb|mrt|apr|mei|jun|jul|aug|sep|okt|nov|dec",
        days: "maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag",
        days_short: "ma|di|wo|do|vr|za|zo",
    },
    TimeNames {
        locales: "pt_BR",
        months: "janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro",
        months_short: "Jan|Fev|Mar|Abr|Mai|Jun|Jul|Ago|Set|Out|Nov|Dez",
        days: "segunda|terça|quarta|quinta|sexta|sábado|domingo",
        days_short: "Seg|Ter|Qua|Qui|Sex|Sáb|Dom",
    },
    TimeNames {
        locales: "pt_PT",
        months: "Janeiro|Fevereiro|Março|Abril|Maio|Junho|Julho|Agosto|Setembro|Outubro|Novembro|Dezembro",
        months_short: "Jan|Fev|Mar|Abr|Mai|Jun|Jul|Ago|Set|Out|Nov|Dez",
        days: "Segunda|Terça|Quarta|Quinta|Sexta|Sábado|Domingo",
        days_short: "Seg|Ter|Qua|Qui|Sex|Sáb|Dom",
    },
    TimeNames {
        locales: "pl_PL",
        months: "styczeń|luty|marzec|kwiecień|maj|czerwiec|\
             lipiec|sierpień|wrzesień|październik|listopad|grudzień",
        months_short: "sty|lut|mar|kwi|maj|cze|lip|sie|wrz|paź|lis|gru",
        days: "poniedziałek|wtorek|środa|czwartek|piątek|sobota|niedziela",
        days_short: "pon|wto|śro|czw|pią|sob|nie",
    },
    TimeNames {
        locales: "ru_RU",
        months: "Января|Февраля|Марта|Апреля|Мая|Июня|Июля|Августа|Сентября|Октября|Ноября|Декабря",
        months_short: "Янв|Фев|Мар|Апр|Май|Июн|Июл|Авг|Сен|Окт|Ноя|Дек",
        days: "Понедельник|Вторник|Среда|Четверг|Пятница|Суббота|Воскресенье",
        days_short: "Пнд|Втр|Срд|Чтв|Птн|Сбт|Вск",
    },
    TimeNames {
        locales: "sv_SE sv_FI",
        months: "januari|februari|mars|april|maj|juni|juli|augusti|september|oktober|november|december",
        months_short: "jan|feb|mar|apr|maj|jun|jul|aug|sep|okt|nov|dec",
        days: "måndag|tisdag|onsdag|torsdag|fredag|lördag|söndag",
        days_short: "mån|tis|ons|tor|fre|lör|sön",
    },
    TimeNames {
        locales: "da_DK",
        months: "januar|februar|marts|april|maj|juni|juli|august|september|oktober|november|december",
        months_short: "jan|feb|mar|apr|maj|jun|jul|aug|sep|okt|nov|dec",
        days: "mandag|tirsdag|onsdag|torsdag|fredag|lørdag|søndag",
        days_short: "man|tir|ons|tor|fre|lør|søn",
    },
    TimeNames {
        locales: "nb_NO no_NO",
        months: "januar|februar|mars|april|mai|juni|juli|august|september|oktober|november|desember",
        months_short: "jan|feb|mar|apr|mai|jun|jul|aug|sep|okt|nov|des",
        days: "mandag|tirsdag|onsdag|torsdag|fredag|lørdag|søndag",
        days_short: "man|tir|ons|tor|fre|lør|søn",
    },
    TimeNames {
        locales: "cs_CZ",
        months: "leden|únor|březen|duben|květen|červen|červenec|srpen|září|říjen|listopad|prosinec",
        months_short: "led|úno|bře|dub|kvě|čen|čec|srp|zář|říj|lis|pro",
        days: "Pondělí|Úterý|Středa|Čtvrtek|Pátek|Sobota|Neděle",
        days_short: "Po|Út|St|Čt|Pá|So|Ne",
    },
    TimeNames {
        locales: "tr_TR",
        months: "Ocak|Şubat|Mart|Nisan|Mayıs|Haziran|Temmuz|Ağustos|Eylül|Ekim|Kasım|Aralık",
        months_short: "Oca|Şub|Mar|Nis|May|Haz|Tem|Ağu|Eyl|Eki|Kas|Ara",
        days: "Pazartesi|Salı|Çarşamba|Perşembe|Cuma|Cumartesi|Pazar",
        days_short: "Pzt|Sal|Çrş|Prş|Cum|Cts|Paz",
    },
    TimeNames {
        locales: "ja_JP",
        months: "1月|2月|3月|4月|5月|6月|7月|8月|9月|10月|11月|12月",
        months_short: " 1月| 2月| 3月| 4月| 5月| 6月| 7月| 8月| 9月|10月|11月|12月",
        days: "月曜日|火曜日|水曜日|木曜日|金曜日|土曜日|日曜日",
        days_short: "月|火|水|木|金|土|日",
    },
    TimeNames {
        locales: "zh_CN zh_HK",
        months: "一月|二月|三月|四月|五月|六月|七月|八月|九月|十月|十一月|十二月",
        months_short: " 1月| 2月| 3月| 4月| 5月| 6月| 7月| 8月| 9月|10月|11月|12月",
        days: "星期一|星期二|星期三|星期四|星期五|星期六|星期日",
        days_short: "一|二|三|四|五|六|日",
    },
];

/// Its place among the names that plans may be made for.
const PLACE_BITS: u32 = 6;

impl TimeNames {
    /// Those of `en_US`.
    pub const fn default() -> &'static TimeNames {
        &ALL[0]
    }

    /// The names of a locale, and how that is written.
    pub fn of_locale(name: &str) -> Option<(&'static TimeNames, &'static str)> {
        ALL.iter().find_map(|names| {
            let mut locales = names.locales.split_ascii_whitespace();
            locales.find(|known| known.eq_ignore_ascii_case(name)).map(|known| (names, known))
        })
    }

    /// A number that no others have.
    pub fn number(&self) -> u64 {
        const { assert!(ALL.len() < 1 << PLACE_BITS) };
        ALL.iter().position(|other| std::ptr::eq(other, self)).unwrap_or(0) as u64
    }

    /// The name of a month, from 1 on; short: as `%b` writes it.
    pub fn month(&self, month: u8, short: bool) -> Option<&'static str> {
        let names = if short { self.months_short } else { self.months };
        names.split('|').nth(usize::from(month).checked_sub(1)?)
    }

    /// The name of a day, from 0 for Monday on; short: as `%a` writes it.
    pub fn day(&self, day: usize, short: bool) -> Option<&'static str> {
        if short { self.days_short } else { self.days }.split('|').nth(day)
    }

    /// Characters of the longest name of a month.
    pub fn month_chars_max(&self) -> u32 {
        chars_max(self.months)
    }

    /// Characters of the longest name of a day.
    pub fn day_chars_max(&self) -> u32 {
        chars_max(self.days)
    }
}

fn chars_max(names: &str) -> u32 {
    names.split('|').map(|name| name.chars().count()).max().unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_their_names() {
        for names in &ALL {
            let months = [names.months, names.months_short].map(|list| list.split('|').count());
            let days = [names.days, names.days_short].map(|list| list.split('|').count());
            assert_eq!((months, days), ([12, 12], [7, 7]), "{}", names.locales);
        }
        assert_eq!(
            TimeNames::of_locale("DE_de").map(|(names, name)| (names.month(3, true), name)),
            Some((Some("Mär"), "de_DE"))
        );
        assert_eq!(TimeNames::of_locale("xx_YY"), None);
    }
}
