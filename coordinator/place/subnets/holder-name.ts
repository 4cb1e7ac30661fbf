/**
 * Identifies the company a subnet is registered to (the paper's "same company", section 4.3): one key per company, so that
 * ranges with the same key may be delegated alike. Merging strangers causes wrong delegations, while splitting a company only
 * costs a few probes, so the rule splits in doubt. The key is the first of these that exists:
 *
 *     1. the organisation's handle, within its registry      ripencc:org-handle:ORG-EX1-RIPE
 *        a customer of ARIN's, who has a handle for every    arin:customer:EXAMP-12:example bakery
 *        range: the parent's handle and the name
 *     2. the opaque-id of extended statistics, within the    ripencc:opaque-id:6c1b…
 *        registry (its publisher promises no more)
 *     3. the name, normalised                                name:example networks
 *        one that strangers may share: within registry       name:apnic:JP:data center
 *        and country, or not at all if neither is known
 *
 * Placeholders ("not allocated", "private customer") and maintainers (`mnt-by`) never name a company.
 */
import { composed } from "#protocol/composed";

export interface HolderSource {
  /** The registry that issued the handle or opaque-id. */
  readonly registry?: string | null;
  readonly country?: string | null;
  /** The organisation's handle: `org:` in RPSL, `orgHandle` at ARIN, `ownerid` at LACNIC. */
  readonly handle?: string | null;
  /** The parent organisation of a customer whose own handle covers one range only. */
  readonly parentHandle?: string | null;
  readonly opaqueId?: string | null;
  readonly name?: string | null;
}

export interface HolderIdentity {
  readonly key: string;
  /** The registered name for display or, if there is none, the handle or opaque-id. */
  readonly name: string;
  readonly handle: string | null;
}

/** Accepted form of handles and ids. Any other text identifies nobody. */
const idText = /^[\p{L}\p{N}][\p{L}\p{N}._@/:+-]{0,99}$/u;

const isMaintainer = (text: string) => text.includes("-") && maintainerName.test(text);
const maintainerName = /^(?:mnt|maint)-|-mnt$/i;

/** Returns the holder that a registry record names, or null if it identifies no company. */
export function holderOf(source: HolderSource): HolderIdentity | null {
  const name = shownName(source.name);
  return byHandle(source, name) ?? byOpaqueId(source, name) ?? byName(source, name);
}

function byHandle(source: HolderSource, name: string | null): HolderIdentity | null {
  const { registry, handle } = source;
  if (!registry || !handle) return null;
  const text = handle.trim().toUpperCase();
  if (!idText.test(text) || isPlaceholderHandle(text) || isMaintainer(text)) return null;
  return {
    key: customerKey(source, name) ?? `${registry}:org-handle:${text}`,
    name: name ?? text,
    handle: text,
  };
}

/** Returns null if the customer has no name of its own. Each of its ranges then counts as a separate holder. */
function customerKey({ registry, parentHandle }: HolderSource, name: string | null): string | null {
  if (!parentHandle || name === null) return null;
  const parent = parentHandle.trim().toUpperCase();
  const normalised = normaliseCompanyName(name);
  if (!idText.test(parent) || isPlaceholderName(normalised)) return null;
  return `${registry}:customer:${parent}:${normalised}`;
}

function byOpaqueId({ registry, opaqueId }: HolderSource, name: string | null): HolderIdentity | null {
  if (!registry || !opaqueId) return null;
  const text = opaqueId.trim();
  if (!idText.test(text) || isPlaceholderId(text)) return null;
  return { key: `${registry}:opaque-id:${text}`, name: name ?? text, handle: null };
}

function byName({ registry, country }: HolderSource, name: string | null): HolderIdentity | null {
  if (name === null) return null;
  const { text, isDistinctive } = companyNameOf(name);
  if (isPlaceholderName(text)) return null;
  if (isDistinctive) return { key: `name:${text}`, name, handle: null };
  if (!registry && !country) return null;
  return { key: `name:${registry ?? ""}:${country ?? ""}:${text}`, name, handle: null };
}

/** The name in composed form with normalised spaces. Null if it is a placeholder, a maintainer or empty. */
function shownName(name: string | null | undefined): string | null {
  const text = withSingleSpaces(name?.slice(0, 500) ?? "");
  return text === "" || isMaintainer(text) || isPlaceholderName(text) ? null : text;
}

function withSingleSpaces(text: string): string {
  const trimmed = composed(text.trim());
  return oddSpace.test(trimmed) ? trimmed.replace(/\s+/g, " ") : trimmed;
}

const oddSpace = / {2}|[^\S ]/;

// Normalises a company's name: drops case, accents, punctuation and legal forms, so that `Example Networks, Inc.`,
// `EXAMPLE NETWORKS INC` and `Example-Networks` are one company. `isDistinctive` says whether enough remains to tell
// companies apart.

/** Maximum length. The rest of a longer name distinguishes no companies, and registry text is untrusted. */
const maxNameLength = 200;

const eastAsianForms = /株式会社|有限会社|合同会社|股份有限公司|有限责任公司|有限公司|주식회사/g;

/** Words too common in company names to distinguish them. */
const commonWords = wordSet(`
  a access administration agency alfa alpha an and area association at authority backbone bank block broadband
  broadcasting business by cable center central centre centro city client clients cloud college com comercio
  communication communications companhia computer computers computing connect consulting corporate council
  customer customers data datacenter de del department der di digital do dsl dynamic education electric
  electronics empresa enterprise enterprises exchange fiber fibre first for foundation general global government
  group holding holdings home hospital host hosted hosting hostmaster in infrastructure institute interconnect
  international internet intersvyaz intranet ip isp it ix la lan last library line link local management media
  mile ministry mobile multiservice national net network networks new of office online operations operator phone
  pool power provider public regional research residential school server servers service services servicios
  sistemas site smart soft software solution solutions state static svyazinform svyaztelecom system
  systems tech technologies technology tele telecom telecommunication telecommunications telecomservice
  telecomunicaciones telecomunicacoes telekom telematica telephone teleservis television the trading und
  university uplink user users wan web webhosting wifi wireless world y
`);

/** Minimum letters and digits in the distinctive words of a name of two or more words. */
const minOwnLetters = 7;

/**
 * Minimum letters in a single distinctive word, alone or with a common one. Among 75,000 network operators "Skynet",
 * "Intercom", "Fiberlink" and "Infinity Broadband" each named several strangers, while longer words mostly named one company.
 */
const minLettersOfOneWord = 10;

const minLettersBesideCommon = 9;

/** Minimum for Chinese, Japanese and Korean names, in characters. */
const minWideLetters = 4;

interface CompanyName {
  /** The name without case, accents, punctuation and legal forms, with words separated by single spaces. May be empty. */
  readonly text: string;
  /** Whether the text is long and distinctive enough to name one company everywhere. */
  readonly isDistinctive: boolean;
}

export function companyNameOf(name: string): CompanyName {
  const words = withoutLegalForms(companyWords(name.slice(0, maxNameLength)));
  const text = words.join(" ");
  return { text, isDistinctive: areDistinctive(words, text) };
}

export function normaliseCompanyName(name: string): string {
  return withoutLegalForms(companyWords(name.slice(0, maxNameLength))).join(" ");
}

/** Words were already hashed for the legal forms, so another look-up costs little. */
function areDistinctive(words: readonly string[], text: string): boolean {
  const ascii = isAscii(text);
  let own = 0;
  let letters = 0;
  for (const word of words) {
    if (commonWords.has(word) || (isDigit(word.charCodeAt(0)) && onlyDigits.test(word))) continue;
    own += 1;
    letters += ascii ? word.length : [...word].length;
  }
  if (!ascii && wideLetter.test(text)) return letters >= minWideLetters;
  return areDistinctiveLetters(own, letters, words.length);
}

/** `own` counts the words that are neither common nor numbers. `letters` counts their letters. */
function areDistinctiveLetters(own: number, letters: number, words: number): boolean {
  if (own > 1) return letters >= minOwnLetters;
  return letters >= (words > 1 ? minLettersBesideCommon : minLettersOfOneWord);
}

const isDigit = (code: number) => code >= 0x30 && code <= 0x39;
const onlyDigits = /^\d+$/;

/** Two Chinese, Japanese or Korean characters distinguish as much as a Latin word. */
const wideLetter = /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}]/u;

/** Plain ASCII names, which nearly all are, skip the steps that only other letters need. */
function companyWords(name: string): readonly string[] {
  const lower = name.toLowerCase();
  return isAscii(lower) ? asciiWords(lower) : unicodeWords(name);
}

function asciiWords(lower: string): readonly string[] {
  let text = lower;
  if (dotOrSlash.test(text)) text = text.replace(formAtTheEnd, "").replace(asciiInitials, joined);
  if (text.includes("&")) text = text.replaceAll("&", " and ");
  if (quote.test(text)) text = text.replace(/['`]/g, "");
  return text.match(/[a-z0-9]+/g) ?? [];
}

function unicodeWords(name: string): readonly string[] {
  const text = name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .normalize("NFC")
    .toLowerCase()
    .replace(eastAsianForms, " ")
    .replace(formAtTheEnd, "")
    .replace(initials, joined)
    .replace(/&/g, " and ")
    .replace(/['’`]/g, "");
  return text.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** `Example, C.A.` and `Example, PT`: elsewhere `ca` and `pt` mean California, Portugal and more. */
const formAtTheEnd = /(?:[\s,]c\.\s?a|,\s*pt)\.?$/;

/** `S.A.`, `a/s`, `G.m.b.H`: every letter but the last is followed by a point or slash. */
const asciiInitials = /(?<![a-z0-9])(?:[a-z][./]\s?)+[a-z]?(?![a-z0-9])/g;

const initials = /(?<![\p{L}\p{N}])(?:\p{L}[./]\s?)+\p{L}?(?![\p{L}\p{N}])/gu;
const joined = (letters: string) => `${letters.replace(/[./\s]/g, "")} `;
const isAscii = (text: string) => !notAscii.test(text);
const notAscii = /[\u0080-\uffff]/;
const dotOrSlash = /[./,]/;
const quote = /['`]/;

// Registry texts that stand in the place of a holder but identify nobody.

/** Whether a registered or normalised name identifies nobody: "not allocated", "private customer", "????". */
function isPlaceholderName(name: string): boolean {
  const first = firstAsciiWord(name);
  if (!asciiLetter.test(first) && !anyLetter.test(name)) return true;
  if (!firstWords.has(first) && !onlyXs.test(first)) return false;
  return placeholderNames.test(plain(name));
}

function isPlaceholderHandle(handle: string): boolean {
  return placeholderHandles.has(handle);
}

function isPlaceholderId(opaqueId: string): boolean {
  return placeholderIds.test(opaqueId);
}

const placeholderHandles: ReadonlySet<string> = new Set([
  "ORG-IANA1-RIPE",
  "IANA",
  "IANA-RESERVED",
  "IANA1-RIPE",
  "NOT-ALLOCATED",
]);

const placeholderIds = /^(?:0+|x+|n\/?a|none|null|unknown|reserved|available|unallocated)$/i;

/** Lower-case names, with words separated by single spaces. */
const placeholderNames = new RegExp(
  `^(?:${[
    "x+|tba|tbd|n ?a|nil|none|null|unknown|unspecified|undefined|unnamed|no name|not available|not applicable",
    "anonymous|private|private (?:customer|person|individual|user|residence|residential customer)s?",
    "(?:residential )?(?:customer|user|individual|subscriber)s?|reserved|unallocated|unassigned|available|free|spare",
    "legacy|test|testing|dummy|example|placeholder|stub|to be (?:defined|determined|assigned)|various(?: registries)?",
    "iana|internet assigned numbers authority|(?:not|never) (?:allocated|assigned)(?: .*)?|administered by .*",
    "(?:early|transferred) .*registration.*|non ripe ncc managed.*|address(?:es)? not .*",
    "(?:iana|afrinic|apnic|arin|lacnic|ripe) (?:reserved|special|block|blk|pool).*",
  ].join("|")})$`,
  "u",
);

/** Every placeholder name begins with one of these words (or is a row of x), so other names are rejected fast. */
const firstWords = wordSet(`
  tba tbd n na nil none null unknown unspecified undefined unnamed no not never anonymous private residential
  customer customers user users individual individuals subscriber subscribers reserved unallocated unassigned
  available free spare legacy test testing dummy example placeholder stub to various iana internet administered
  early transferred non address addresses afrinic apnic arin lacnic ripe
`);

const onlyXs = /^x+$/;
const asciiLetter = /[a-z]/;
const anyLetter = /\p{L}/u;

/** The first word in lower case, or empty. Uses character codes, because most names pass here twice. */
function firstAsciiWord(name: string): string {
  let start = 0;
  while (start < name.length && !isAsciiAlphanumeric(name.charCodeAt(start))) start += 1;
  let end = start;
  while (end < name.length && isAsciiAlphanumeric(name.charCodeAt(end))) end += 1;
  return name.slice(start, end).toLowerCase();
}

function isAsciiAlphanumeric(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || (code >= 0x30 && code <= 0x39);
}

const plain = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();

// Removes the legal forms of companies from lower-case names: `example networks ltd`, `ooo example networks` and
// `example networks` are one company.

function withoutLegalForms(words: readonly string[]): readonly string[] {
  const parts = hasPhraseWord(words) ? withJoinedPhrases(words) : words;
  let end = parts.length;
  while (end > 0) {
    const word = parts[end - 1] as string;
    if (!legalForms.has(word) && !(end < parts.length && legalBesideOthers.has(word))) break;
    end -= 1;
  }
  let start = 0;
  while (start < end && leadingForms.has(parts[start] as string)) start += 1;
  if (end < parts.length && start + 1 < end && leadingBesideOthers.has(parts[start] as string)) start += 1;
  return start === 0 && end === parts.length ? parts : parts.slice(start, end);
}

function wordSet(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}

/** Legal forms of several words, each with its one-word equivalent. */
const legalPhrases: readonly (readonly [RegExp, string])[] = [
  [/ gmbh (?:and )?co (?:kg|kgaa|ohg)(?= |$)/g, " gmbh"],
  [/ sp z ?oo(?= |$)/g, " spzoo"],
  [/ spo[lł]ka z ograniczona odpowiedzialnoscia(?= |$)/g, " spzoo"],
  [/ (?:spol s ?ro|s ro)(?= |$)/g, " sro"],
  [/ (?:sapi|sab|sa|s) de (?:rl de )?cv(?= |$)/g, " sa"],
  [/ s de rl(?= |$)/g, " srl"],
  [/ sa rl(?= |$)/g, " sarl"],
  [/ (?:sa|sas) esp(?= |$)/g, " sa"],
  [/ (?:ltda|eireli|sa)(?: me| epp)+(?= |$)/g, " ltda"],
  [/ (?:ltd|limited|anonim) (?:sti|sirketi)(?= |$)/g, " ltd"],
  [/ (?:(?:open|closed|public|private) )*joint stock(?: co(?= |$)| company(?= |$)|$)/g, " jsc"],
  [/ limited liability partnership(?= |$)/g, " llp"],
  [/ (?:limited liability(?: co| company)?|(?:company )?with limited liability)(?= |$)/g, " llc"],
  [/ (?:llc fz|fz llc)(?= |$)/g, " llc"],
  [/ sociedad limitada(?: unipersonal)?(?= |$)/g, " sl"],
  [/ (?:sociedad anonima(?: cerrada| abierta| de capital variable)?|societe anonyme)(?= |$)/g, " sa"],
];

/** Every phrase contains one of these words. */
const phraseWords = wordSet(
  "gmbh oo zoo odpowiedzialnoscia ro cv rl esp me epp sti sirketi stock liability fz sociedad anonyme",
);

function hasPhraseWord(words: readonly string[]): boolean {
  for (const word of words) if (phraseWords.has(word)) return true;
  return false;
}

function withJoinedPhrases(words: readonly string[]): readonly string[] {
  const text = legalPhrases.reduce(
    (name, [phrase, form]) => name.replace(phrase, form),
    ` ${words.join(" ")}`,
  );
  return text.slice(1).split(" ");
}

const legalForms = wordSet(`
  inc incorporated corp corporation co company ltd limited llc llp lp plc pc ulc opc
  gmbh mbh ag kg kgaa ohg ug ev eg se ek gbr gie
  sa sas sasu sarl eurl sl slu slne srl srls spa snc sc scrl sprl asbl
  ab as asa aps oy oyj hf ehf ou
  bv nv vof bvba cv
  pty pte pvt sdn bhd kk tbk
  spzoo sro zrt kft nyrt doo dooel dd ad ead eood ood uab sia tov fop shpk ike mchj
  ooo oao zao pao ao jsc ojsc cjsc pjsc pjs too
  оао зао пао ао ооо тов тоо
  ltda lda eireli eirl epp sac saa saesp sasesp sae sal saog fze fzco dmcc wll
`);

/** Words that count as legal forms only next to another one: `Example (Private) Limited`. */
const legalBesideOthers = wordSet("private public proprietary the and smc unipessoal unipersonal");

const leadingForms = wordSet(
  "the pt sia uab fop pe pp ooo oao zao pao ao jsc ojsc cjsc pjsc llc tov too ооо оао зао пао ао тов тоо",
);

/** Words that count as a leading legal form only with another one at the end: `SC Example SRL`. */
const leadingBesideOthers = wordSet("sc");
