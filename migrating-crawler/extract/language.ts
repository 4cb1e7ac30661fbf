/**
 * Determines a page's language (ISO 639). The declared language counts unless the text clearly contradicts it, since templates
 * declare English whatever the content. Otherwise, the language is detected. Function words decide most pages. A model, which
 * takes 53 MB, is loaded only for the first page that neither declares a language nor reveals one by its words.
 */

interface PageLanguage {
  readonly language: string | null;
  readonly detected: string | null;
}

/** The model reads only texts of at least this length, and only this much of them. */
const minModelCharacters = 100;

const maxModelCharacters = 1000;

/**
 * A declaration is wrong when more than this share of the letters belongs to a foreign script. On 565 real pages,
 * correct declarations have at most 0.18 (names and code in Japanese) and wrong ones at least 0.97.
 */
const overruledShare = 0.8;

/** If the foreign letters exceed this share, the words in the remaining letters cannot contradict the declaration. */
const ownShare = 0.5;

const contradictedShare = 0.5;

export async function languageOf(page: {
  readonly declared: string | null;
  readonly contentLanguage: string | null;
  readonly text: string;
}): Promise<PageLanguage> {
  const declared = languageCode(page.declared) ?? languageCode(page.contentLanguage);
  const sample = sampleOf(page.text);
  const letters = lettersOf(sample);
  const seen = languageIn(sample, letters);
  if (declared !== null) {
    const foreign = foreignShare(letters, declared);
    if (foreign > overruledShare) {
      const language = seen?.isClear ? seen.language : await languageByModel(page.text);
      return { language: language ?? declared, detected: language };
    }
    const isSure = foreign < ownShare && seen !== null && seen.language !== borrowed[declared];
    const isOverruled = isSure && (await contradicts(seen, declared, page.text));
    return {
      language: isOverruled ? seen.language : declared,
      detected: seen?.isClear || isOverruled ? seen!.language : null,
    };
  }
  const detected = seen?.isClear ? seen.language : await languageByModel(page.text);
  return { language: detected, detected };
}

/**
 * A declared language that cannot be recognised is trusted, since its text may resemble a related language. If another
 * language leads only slightly, the model must agree.
 */
async function contradicts(seen: Detected, declared: string, text: string): Promise<boolean> {
  if (areAlike(seen.language, declared) || !isKnownLanguage(declared)) return false;
  const [own, other] = [seen.scores.get(declared) ?? 0, seen.scores.get(seen.language)!];
  if (seen.isClear && own < contradictedShare * other) return true;
  return own < other && (await languageByModel(text)) === seen.language;
}

async function languageByModel(text: string): Promise<string | null> {
  if (text.length < minModelCharacters) return null;
  const { eld } = await import("eld/extrasmall");
  const found = eld.detect(text.slice(0, maxModelCharacters));
  return found.isReliable() ? languageCode(found.language) : null;
}

/**
 * Reads `de` from `de-AT`, `de_DE`, `de, en` and `ger`. Returns null for an invalid tag (BCP 47) or a language unknown to
 * CLDR, such as `xx`.
 */
export function languageCode(tag: string | null): string | null {
  const code = /^\s*([a-z]{2,3})(?=$|[-_,;\s])/i.exec(tag ?? "")?.[1]?.toLowerCase();
  if (code === undefined) return null;
  const known = knownCodes.get(code);
  if (known !== undefined) return known;
  const checked = checkedCode(code);
  if (knownCodes.size >= maxKnownCodes) knownCodes.clear();
  knownCodes.set(code, checked);
  return checked;
}

const knownCodes = new Map<string, string | null>();
const maxKnownCodes = 500;

function checkedCode(code: string): string | null {
  if (code === "mul" || code === "zxx" || languageNames.of(code) === undefined) return null;
  const canonical = Intl.getCanonicalLocales(code)[0]!;
  return canonical.length === 2 ? canonical : code;
}

const languageNames = new Intl.DisplayNames(["en"], { type: "language", fallback: "none" });

// Detects a text's language without a model: by its script, and within a script by function words and characteristic letters.
// It needs about 800 characters and reports how certain the result is.

interface Detected {
  readonly language: string;
  readonly isClear: boolean;
  /** The score of each known language of this script, by ISO 639-1 code. 0 means no evidence. */
  readonly scores: ReadonlyMap<string, number>;
}

const sampleCharacters = 800;
const fewestWords = 8;
const fewestDifferent = 4;

/**
 * In running text, at least this share of the words are function words. The second-best language scores at most `clearLead`
 * times the best.
 */
const clearShare = 0.2;

const clearLead = 0.8;

/** The score of a word with a characteristic letter. A function word scores 1. */
const letterScore = 0.5;

export function detectLanguage(text: string): Detected | null {
  const sample = sampleOf(text);
  return languageIn(sample, lettersOf(sample));
}

function languageIn(sample: string, letters: Letters): Detected | null {
  const script = scriptOf(letters);
  if (script === null) return null;
  if (/^[a-z]/.test(script)) return { language: script, isClear: true, scores: new Map([[script, 1]]) };
  return byWords(sample);
}

function isKnownLanguage(language: string): boolean {
  return functionWords.has(language) || hasOwnScript(language);
}

/** Takes the beginning and the middle, since pages often start with something other than their text. */
function sampleOf(text: string): string {
  if (text.length <= sampleCharacters) return text;
  const half = sampleCharacters / 2;
  const middle = Math.max(half, text.length >> 1);
  return `${text.slice(0, half)} ${text.slice(middle, middle + half)}`;
}

function byWords(sample: string): Detected | null {
  const words = sample.toLowerCase().match(/[\p{L}\p{M}]+/gu) ?? [];
  if (words.length < fewestWords) return null;
  const scores = new Map<string, number>();
  for (const word of words) {
    for (const language of languagesOfWord.get(word) ?? nothing) add(scores, language, 1);
    for (const language of languagesOfLetters(word)) add(scores, language, letterScore);
  }
  if (scores.size === 0) return null;
  const [language, score] = bestOf(scores, () => true)!;
  const next = bestOf(scores, (other) => !areAlike(other, language))?.[1] ?? 0;
  const isClear =
    score >= clearShare * words.length && next <= clearLead * score && hasSeveral(words, language);
  return { language, isClear, scores };
}

function bestOf(
  scores: ReadonlyMap<string, number>,
  counts: (language: string) => boolean,
): readonly [string, number] | null {
  let best: readonly [string, number] | null = null;
  for (const entry of scores) if (entry[1] > (best?.[1] ?? 0) && counts(entry[0])) best = entry;
  return best;
}

/** Requires several different words of more than one letter, since repeated words and single letters prove nothing. */
function hasSeveral(words: readonly string[], language: string): boolean {
  const several = new Set<string>();
  for (const word of words) {
    if (word.length > 1 && languagesOfWord.get(word)?.includes(language)) several.add(word);
    if (several.size === fewestDifferent) return true;
  }
  return false;
}

function add(scores: Map<string, number>, language: string, score: number): void {
  scores.set(language, (scores.get(language) ?? 0) + score);
}

/** Languages that share a declaration or are too similar in writing to be distinguished. */
const alike: readonly (readonly string[])[] = [
  ["nb", "nn", "no", "da"],
  ["hr", "sr", "bs", "sh"],
  ["id", "ms"],
  ["fa", "prs"],
];

export function areAlike(a: string, b: string): boolean {
  return a === b || alike.some((group) => group.includes(a) && group.includes(b));
}

/**
 * Function words (articles, pronouns, prepositions, forms of `to be`) that reveal a language within a sentence or two. The
 * lists are our own, in lower case, by ISO 639-1 code. A word in several lists counts for each of them.
 */
const functionWords = listed(`
af: die en van in is nie het dat vir met aan ook wat deur om te sy hulle ons hierdie word kan sal was as maar of by na uit daar hy ek jy 'n moet
ar: في من على أن إلى هذا التي الذي لا ما أو كل عن هذه مع كان بين ذلك له لها قد بعد غير حق شخص أي لكل هو هي كما فرد الحق إن ولا وفي
az: və bu bir üçün ilə ki də da olan kimi hər onun öz daha edir var isə onlar azərbaycan çox sonra olunur hüququ malikdir ya
be: і ў у не на што з да ён як па для за ад або яго пры гэта мае кожны чалавек права ці іх былі быў яны але які якія якая усе ўсе людзі ні ва павінен
  толькі таксама
bg: на и да се са за от в е с по не като това до или при който която които има всеки човек право му си към ще те но само всички след бъде няма между тези
  този бил била чрез според
ca: el la els les de del dels i que en un una amb per no és ha han als aquest aquesta o seva seu tota tot són ser més però com té dret seus hi va les
  persona
cs: a v na se je že s z do o k i to za by ale jsou jako od po pro který která které má být nebo jeho byl bylo při tak není ve své svých každý právo
cy: y yr yn a i o ar mae ei eu gan ac am ei bod wedi sydd neu hawl pob gan un hyn hwn hon nid oes bydd fel gyda cael
da: og i at det er en af på til den de for ikke med som har et der fra han var kan om skal eller vil blev efter også denne sin hver enhver ret mod alle
  mellem ved men være
de: der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach wird bei einer um am sind
  noch wie einem über so zum haben oder jeder seiner
en: the of and to in a is that for it as was with be by on not he his are this at from or have an which has had but they were you all their one can there
  been if more will would who when so no we its our everyone shall any
eo: la kaj de en al estas por ke kun kiu ne per sur el aŭ rajtas ĉiu homoj liaj tiu estis sed havas pri oni kiel lia ili siaj
es: de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha este sí porque esta son entre está cuando muy sin
  sobre también me hasta hay donde quien toda persona derecho tiene
et: ja on ei et see ta oma kui ning või mis ka kes oli ma kuid siis nende tema selle tuleb õigus igal inimesel olema poolt saab aga veel üle
eu: eta da du ez bat dira edo izan ere bere baina dute egin den hau hori beste guztiak pertsona orok eskubidea dituzte zen zuen behar dela artean gizaki
  honen
fa: و در به از که این را با است برای آن یک تا هر بر خود می یا شود باید حق دارد کس او نیز هم شده ها های کرد بود
fi: ja on ei että se hän oli ovat joka mutta myös kun tai niin hänen sen sekä kuin olla tämä ole mukaan sitä jos jokaisella oikeus kaikki ihmisoikeuksien
  heidän jonka vain voi mitä
fr: de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec son aux d l ou sa leur tout toute cette être nous
  vous on ont mais comme elle droit ces été
ga: an na agus i a ar is le go do ag de atá nó tá sé bhí ní leis faoi gach duine chun ceart sin mar ach níl iad sa den seo féin
gl: de a o que e do da en os un unha as para por con non se na no ao é como máis ou pero súa seu toda persoa dereito ten dos das nos nas sen estes entre
  ser todo polo
hi: के में की है और से को का पर ने हैं एक यह भी कि इस लिए या जो अपने किसी हो था नहीं तथा वह प्रत्येक व्यक्ति अधिकार करने
hr: i u je na se da su za s o od koji kao što to ali ili nije po iz bi sve svoje ima biti pravo svatko ne te koja kako bio ako njegov svih prema
hu: a az és hogy nem is egy ez meg van volt de minden vagy csak ha el már még mint kell azt mely joga személynek ki sem szabad mert után pedig való nem
  ezt lehet
id: dan yang di untuk dengan dari dalam ini tidak pada adalah atau ke oleh setiap orang akan sebagai itu telah dapat hak berhak juga ada bagi mereka
  karena tahun bahwa tersebut saya kita
is: og að í er á sem um til við með hann fyrir ekki það en af var eru þess hafa skal eða verið því frá allir hver réttur sinni þeir eigi hún þá manna
it: di e il la che in a un per è non una con del si le i da dei al della come sono lo gli alla più nel ha o anche se ma su questo delle ad suo diritto
  ogni essere stato ed nella individuo
kk: және бір үшін мен да де бар осы әр адам құқығы болып оның немесе өз бұл ол деп құқылы керек жəне тиіс емес
lt: ir yra kad į su ne iš tai jo kaip ar bei turi bet jis už ant būti žmogus teisę kiekvienas arba nuo prie buvo savo visi taip pat apie jei
lv: un ir ar uz no par ka vai kas tas nav bet to kā lai pie tiesības cilvēkam katram viņa ikvienam savu būt var bija pēc visi gan arī
mk: на и да се за од во е со не ќе како или што по до ја го секој човек право има при кој која треба му нивните биде сите
mr: आणि आहे व या च ते हे की त्या असे होते नाही एक प्रत्येक अधिकार मनुष्यास आहेत किंवा करण्याचा यांच्या त्याच्या तर हा ही
mt: u ta li il l fil ma huwa dan jew għandu kull bniedem jkun minn biex mill tal kollha dritt bla din hija fuq
nb: og i det er en til på som for av at med den ikke har de å et fra han var kan om skal eller ble ved sin enhver rett seg mot blir men være hun også
  dette etter
ne: र को मा छ का ले लाई हुने गर्न पनि छन् हो तथा यो भएको गर्ने प्रत्येक व्यक्तिलाई अधिकार हुनेछ वा गरेको यस उसको कुनै
nl: de het een van en in is dat op te voor met zijn niet die aan er om ook als of door heeft bij uit wordt maar naar hij worden ze tot wat over zich nog
  werd deze recht ieder heeft dit kan ik je
nn: og i det er ein til på som for av at med den ikkje har dei å eit frå han var kan om skal eller vert ved seg rett alle kvar mot men vere ho også etter
  noko dette
pl: i w na z do nie się to że jest o jak po co ale od za przez dla są oraz być jego ma lub który która które prawo każdy człowiek ten tym tego czy już
  może bez
pt: de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à seu sua ou ser são toda pessoa direito pelo
  também aos nos entre pela sem pode
ro: de și în a la cu pe care nu o este din un că sunt mai al pentru sau să au fi prin orice persoană dreptul ca lui se fie cel ce dar după dintre fost
  acest ale
ru: и в не на что с по он как это из к у за но от его для то или а же все так ее их было при быть каждый человек право имеет который может только если она
  они мы вы ты чтобы уже еще ещё где когда очень нет да больше один раз тем ничего нужно этого после есть без со во всех также через до себя человека
  права свободы
sk: a v na sa je že s z do o k i to za by ale sú ako od po pre ktorý ktorá ktoré má byť alebo jeho bol bolo pri tak nie vo každý právo svoje
sl: in je v na se da so za z s pri ki ali ne kot po pa iz do tudi ima pravico vsakdo biti bi svoje o ga kar vsi mora njegove le če med
sq: dhe të në e i së për me nga një që është nuk do si ka më janë ose të drejtë çdo njeri këtë kjo duhet të tij kanë gjithë
sr: и у је на се да за са од што као или које који то су би по не из свако има право ће али лице све његов људских бити
sv: och i att det som en på är av för med den till inte har de ett om var från han kan ska eller skall sin rätt envar alla mot blev vid också men så efter
  detta vara hon
sw: na ya wa kwa ni katika la za kila mtu haki kuwa ana au hii huo watu yake wote ili cha pia kama bila wake lakini hakuna
tl: ang ng sa na mga ay at ito may bawat tao karapatan hindi o kanyang siya para isang lahat kung nang kay ni dapat
tr: ve bir bu için da de ile olan olarak her ya daha çok gibi kadar sonra ne var hakkı şahsın veya hakkına olduğu göre kendi en o ancak hiç değil
  tarafından olması
uk: і в на не що з та до у за як від або це й для його має кожна людина право є які який при вона із бути але їх про він щоб якщо вони ми ви вже ще де
  коли дуже нема тільки більше один раз тим нічого треба потрібно цього після без зі всіх також через себе людини права свободи ні чи те ця цей бо
ur: کے میں کی ہے اور سے کو کا پر نے ہیں ایک یہ بھی کہ اس یا جو اپنے کسی ہو حق شخص ہر جائے تھا نہیں گا
uz: va bu bir bilan uchun har ham o'z ega lozim yoki inson huquqiga ega bo'lgan edi uning bilan kerak hamda
vi: và của có được các cho là trong không một những người với mọi quyền hay khi để đều này đã do ở về từ bị tự đó ra như phải
`);

const languagesOfWord = indexed(functionWords, (words) => words);

/** Letters that only some languages of a script use. A word with such a letter counts for those languages. */
const tellingLetters = listed(`
az: ə  be: ўіыэюяй  bg: ъщюяй  cs: řůě  cy: ŵŷ  da: øæ  de: ßäü  eo: ĉĝĥĵŝŭ  es: ñ¿¡  et: õäü  fa: پچژگکی  fi: äö  fr: œèêç  gl: ñ  hr: đćčšž  hu: őűö
is: þðæ  kk: әғқңөұүһыйя  lt: ėųįūž  lv: āēīķļņģ  mk: ѓќѕјљњџ  mr: ळ  mt: ħġżċ  nb: øæ  nn: øæ  pl: łąężźś  pt: ãõç  ro: ășțşţ  ru: ыэё  sk: ľĺŕťžčš
sl: čšž  sq: ëç  sr: ђћјљњџ  sv: äö  tr: ğış  uk: їєґі  ur: ٹڈڑںےہھ  vi: đươăạảấầậếềệịọốồộớờợủứừựỹ
`);

const languagesByLetter = indexed(tellingLetters, (letters) => [...letters.join("")]);

/** Parses `de: der die und  en: the of and`. */
function listed(text: string): ReadonlyMap<string, readonly string[]> {
  const lists = text.matchAll(/(\w\w):((?:\s+[^\s:]+(?=\s))+)/g);
  return new Map(Array.from(lists, ([, language, words]) => [language!, words!.trim().split(/\s+/)]));
}

function indexed(
  lists: ReadonlyMap<string, readonly string[]>,
  entriesOf: (list: readonly string[]) => readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const index = new Map<string, string[]>();
  for (const [language, list] of lists) {
    for (const entry of new Set(entriesOf(list))) index.set(entry, [...(index.get(entry) ?? []), language]);
  }
  return index;
}

const asciiOnly = /^[a-z]*$/;
const nothing: readonly string[] = [];

function languagesOfLetters(word: string): Iterable<string> {
  if (asciiOnly.test(word)) return nothing;
  const found = new Set<string>();
  for (const letter of word) for (const language of languagesByLetter.get(letter) ?? []) found.add(language);
  return found;
}

// Determines the script of a text, and the language if the script has only one.

/**
 * First and last code point of a block, with the name of its script if several languages share it, or else the language (ISO
 * 639-1).
 */
const blocks: readonly (readonly [first: number, last: number, script: string])[] = [
  [0x41, 0x24f, "Latin"],
  [0x370, 0x3ff, "el"],
  [0x400, 0x52f, "Cyrillic"],
  [0x530, 0x58f, "hy"],
  [0x590, 0x5ff, "he"],
  [0x600, 0x77f, "Arabic"],
  [0x900, 0x97f, "Devanagari"],
  [0x980, 0x9ff, "bn"],
  [0xa00, 0xa7f, "pa"],
  [0xa80, 0xaff, "gu"],
  [0xb80, 0xbff, "ta"],
  [0xc00, 0xc7f, "te"],
  [0xc80, 0xcff, "kn"],
  [0xd00, 0xd7f, "ml"],
  [0xd80, 0xdff, "si"],
  [0xe00, 0xe7f, "th"],
  [0xe80, 0xeff, "lo"],
  [0xf00, 0xfff, "bo"],
  [0x1000, 0x109f, "my"],
  [0x10a0, 0x10ff, "ka"],
  [0x1100, 0x11ff, "ko"],
  [0x1200, 0x139f, "am"],
  [0x1780, 0x17ff, "km"],
  [0x1e00, 0x1eff, "Latin"],
  [0x1f00, 0x1fff, "el"],
  [0x3040, 0x30ff, "ja"],
  [0x3400, 0x4dbf, "zh"],
  [0x4e00, 0x9fff, "zh"],
  [0xac00, 0xd7af, "ko"],
  [0xfb50, 0xfdff, "Arabic"],
  [0xfe70, 0xfeff, "Arabic"],
];

function hasOwnScript(language: string): boolean {
  return blocks.some(([, , script]) => script === language);
}

const fewestLetters = 30;

const isLetter = /\p{L}/u;

/** A cache by UTF-16 unit: 0 if unknown, 1 if not a letter of these scripts, or else the block's index plus two. */
const blockOf = new Uint8Array(0x10000);

const none = 1;
const firstBlock = 2;

/** Languages that mix another language's characters with their own. */
const borrowed: Readonly<Record<string, string>> = { ja: "zh", ko: "zh" };

const severalScripts: Readonly<Record<string, readonly string[]>> = {
  pa: ["pa", "Arabic"],
  ...Object.fromEntries(
    "az bs kk ku ky mn ms sr tg tk tt ug uz"
      .split(" ")
      .map((code) => [code, ["Latin", "Cyrillic", "Arabic"]]),
  ),
};

/** Maps the ISO 15924 codes of CLDR to the names of the blocks. */
const scriptNames: ReadonlyMap<string, string> = new Map([
  ...[...new Set(blocks.map(([, , script]) => script))]
    .filter((script) => /^[a-z]/.test(script))
    .map((language) => [cldrScript(language), language] as const),
  ["Hant", "zh"],
  ["Latn", "Latin"],
  ["Cyrl", "Cyrillic"],
  ["Arab", "Arabic"],
  ["Deva", "Devanagari"],
]);

const knownScripts = new Map<string, string | undefined>();
const maxKnownScripts = 500;

function scriptOfLanguage(language: string): string | undefined {
  if (!knownScripts.has(language)) {
    if (knownScripts.size >= maxKnownScripts) knownScripts.clear();
    knownScripts.set(language, scriptNames.get(cldrScript(language)));
  }
  return knownScripts.get(language);
}

function cldrScript(language: string): string {
  return new Intl.Locale(language).maximize().script ?? "";
}

/** Returns the share of letters outside the language's scripts, or 0 if its scripts are unknown. */
function foreignShare({ byScript, letters }: Letters, language: string): number {
  const script = scriptOfLanguage(language);
  if (script === undefined) return 0;
  if (letters < fewestLetters) return 0;
  const also = byScript.has(language) ? borrowed[language] : undefined;
  const own = severalScripts[language] ?? (also === undefined ? [script] : [script, also]);
  return 1 - own.reduce((sum, script) => sum + (byScript.get(script) ?? 0), 0) / letters;
}

/** Returns the main script (`Latin`, `Cyrillic`, `Arabic`, `Devanagari`) or its only language, or null for too few letters. */
function scriptOf({ byScript, letters }: Letters): string | null {
  if (letters < fewestLetters) return null;
  // Japanese also uses Chinese characters.
  if ((byScript.get("ja") ?? 0) * 5 > letters) return "ja";
  const [script, count] = [...byScript].reduce((most, each) => (each[1] > most[1] ? each : most));
  return 2 * count > letters ? script : null;
}

interface Letters {
  readonly byScript: ReadonlyMap<string, number>;
  readonly letters: number;
}

function lettersOf(text: string): Letters {
  const counts = new Int32Array(firstBlock + blocks.length);
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    counts[blockOf[code] || findBlock(code)]!++;
  }
  const byScript = new Map<string, number>();
  let letters = 0;
  for (const [place, [, , script]] of blocks.entries()) {
    const count = counts[firstBlock + place]!;
    letters += count;
    if (count > 0) byScript.set(script, (byScript.get(script) ?? 0) + count);
  }
  return { byScript, letters };
}

function findBlock(code: number): number {
  const place = isLetter.test(String.fromCharCode(code))
    ? blocks.findIndex(([first, last]) => code >= first && code <= last)
    : -1;
  const block = place < 0 ? none : firstBlock + place;
  blockOf[code] = block;
  return block;
}
