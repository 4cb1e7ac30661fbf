/**
 * A company's name without what does not tell companies apart: case, accents, punctuation and legal forms.
 * `Example Networks, Inc.`, `EXAMPLE NETWORKS INC` and `Example-Networks` are one company. What remains may be
 * too little to tell two companies apart; `isDistinctive` says so.
 */

/** Longer names are cut here: nothing behind distinguishes companies, and text from registries is not to be trusted. */
const maxNameLength = 200;

/** Legal forms of more than one word, as they read after punctuation is gone. */
const legalPhrases: readonly (readonly [RegExp, string])[] = [
  [/ gmbh (?:and )?co (?:kg|kgaa|ohg)(?= |$)/g, " gmbh"],
  [/ sp z oo(?= |$)/g, " spzoo"],
  [/ (?:sapi|sab|sa|s) de (?:rl de )?cv(?= |$)/g, " sa"],
  [/ s de rl(?= |$)/g, " srl"],
  [/ sa rl(?= |$)/g, " sarl"],
];

const legalForms = words(`
  inc incorporated corp corporation co company ltd limited llc llp lp plc pc
  gmbh mbh ag kg kgaa ohg ug ev eg se
  sa sas sasu sarl eurl sl slu slne srl srls spa snc sc scrl asbl
  ab as asa aps oy oyj hf ehf
  bv nv vof bvba cv
  pty pte pvt sdn bhd kk
  spzoo sro zrt kft nyrt doo dd ad ead eood ood uab sia tov
  ooo oao zao pao ao jsc ojsc cjsc pjsc too
  ooo оао зао пао ао ооо тов тоо
  ltda eireli sae sal saog fze fzco wll
`);
/** Legal forms only next to another one: `Example (Private) Limited`. */
const legalBesideOthers = words("private public proprietary the and");
const leadingForms = words(
  "the pt ooo oao zao pao ao jsc ojsc cjsc pjsc llc tov too ооо оао зао пао ао тов тоо",
);
const eastAsianForms = /株式会社|有限会社|合同会社|股份有限公司|有限责任公司|有限公司|주식회사/g;

/** Words that so many companies bear that they do not tell one from another. */
const commonWords = words(`
  a access administration agency an and area association at authority backbone bank block broadband broadcasting business by
  cable center centre central centro city client clients cloud college comercio communication communications
  companhia computer computers computing connect consulting corporate council customer customers data datacenter
  de del der department di digital do dsl dynamic education electric electronics empresa enterprise enterprises
  fiber fibre first for foundation general global government group holding holdings home hosting hospital
  in infrastructure institute international internet intranet isp it la lan library local management media ministry mobile
  national net network networks new of office online operations operator phone pool power provider public regional
  research residential school server servers service services servicios sistemas site software solution solutions
  static state system systems tech technologies technology tele telecom telecommunication telecommunications
  telecomunicaciones telecomunicacoes telekom telephone television the trading und university uplink user users wan web wifi wireless world y
`);

/** Fewest letters and digits in the own words of a name, when there are two words or more. */
const minOwnLetters = 5;
/**
 * Fewest in a single own word, alone or beside a common one. Among 75,000 network operators "Skynet", "Intercom",
 * "Fiberlink" and "Infinity Broadband" were several strangers each; longer words mostly meant one company.
 */
const minLettersOfOneWord = 10;
const minLettersBesideCommon = 9;
/** The same for Chinese, Japanese and Korean names, in characters. */
const minWideLetters = 4;

/** The name without case, accents, punctuation and legal forms, words separated by single spaces; may be empty. */
export function normaliseCompanyName(name: string): string {
  const spaced = ` ${plainWords(name.slice(0, maxNameLength))}`;
  const joined = legalPhrases.reduce((text, [phrase, form]) => text.replace(phrase, form), spaced);
  const parts = joined.split(" ").filter((word) => word !== "");
  return withoutLeadingForms(withoutLegalForms(parts)).join(" ");
}

/** Whether a normalised name is long and particular enough to mean one company wherever it is read. */
export function isDistinctive(normalised: string): boolean {
  const own = normalised.split(" ").filter((word) => !commonWords.has(word) && !/^\d+$/.test(word));
  const letters = [...own.join("")].length;
  if (hasWideLetters(normalised)) return letters >= minWideLetters;
  if (own.length > 1) return letters >= minOwnLetters;
  return letters >= (normalised.includes(" ") ? minLettersBesideCommon : minLettersOfOneWord);
}

function plainWords(name: string): string {
  return name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .normalize("NFC")
    .toLowerCase()
    .replace(eastAsianForms, " ")
    .replace(
      /(?<![\p{L}\p{N}])(?:\p{L}[./]\s?)+\p{L}?(?![\p{L}\p{N}])/gu,
      (letters) => `${letters.replace(/[./\s]/g, "")} `,
    )
    .replace(/&/g, " and ")
    .replace(/['’`]/g, "")
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}

function withoutLegalForms(parts: readonly string[]): string[] {
  let end = parts.length;
  while (end > 0) {
    const word = parts[end - 1] as string;
    if (!legalForms.has(word) && !(end < parts.length && legalBesideOthers.has(word))) break;
    end -= 1;
  }
  return parts.slice(0, end);
}

function withoutLeadingForms(parts: readonly string[]): string[] {
  const start = parts.findIndex((word) => !leadingForms.has(word));
  return start < 0 ? [] : parts.slice(start);
}

/** Chinese, Japanese and Korean names: two characters say as much as a Latin word. */
function hasWideLetters(text: string): boolean {
  return /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(text);
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}
