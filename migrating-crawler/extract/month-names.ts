/** The names of the months, long and short, as CLDR has them for a language. */

/** Looked up when a page does not say its language. */
const common = ["en", "de", "fr", "es", "it", "pt", "nl", "ru"];
/** A language's names take some 5 ms to make, so they are kept, of so many languages. */
const maxKept = 50;
const kept = new Map<string, ReadonlyMap<string, number>>();

/** 1 to 12; 0 for a word that is no month's name. `language`: what the page states (BCP 47). English is read anywhere. */
export function monthOf(name: string, language: string | null): number {
  const stated = /^[a-z]{2,3}(?=$|[-_])/i.exec(language ?? "")?.[0].toLowerCase();
  const lower = name.toLowerCase();
  for (const locale of stated === undefined ? common : [stated, "en"]) {
    const month = namesIn(locale).get(lower);
    if (month !== undefined) return month;
  }
  return 0;
}

function namesIn(locale: string): ReadonlyMap<string, number> {
  const known = kept.get(locale);
  if (known !== undefined) return known;
  const names = monthNames(locale);
  if (kept.size >= maxKept) kept.clear();
  kept.set(locale, names);
  return names;
}

function monthNames(locale: string): Map<string, number> {
  const names = new Map<string, number>(locale === "en" ? [["sept", 9]] : []);
  for (const month of ["long", "short"] as const) {
    // With a day the name may stand in another case: "3 мая", not "май".
    for (const day of [{}, { day: "numeric" }] as const) {
      const format = new Intl.DateTimeFormat(locale, { month, ...day, timeZone: "UTC" });
      for (let index = 0; index < 12; index++) {
        const parts = format.formatToParts(Date.UTC(2020, index, 3));
        const name = parts.find(({ type }) => type === "month")?.value ?? "";
        if (/^\p{L}{3,}\.?$/u.test(name)) names.set(name.replace(".", "").toLowerCase(), index + 1);
      }
    }
  }
  return names;
}
