/**
 * The legal forms of companies, as they read in a name of which only lower-case words are left, and taking them
 * off: `example networks ltd`, `ooo example networks` and `example networks` are one company.
 */

/** The words of a name without its legal forms. */
export function withoutLegalForms(words: readonly string[]): readonly string[] {
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

/** A set of the words in a text. */
export function wordSet(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}

/** Legal forms of more than one word, each with the one that stands for it. */
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
/** One of these is in each phrase. */
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
/** Legal forms only next to another one: `Example (Private) Limited`. */
const legalBesideOthers = wordSet("private public proprietary the and smc unipessoal unipersonal");
const leadingForms = wordSet(
  "the pt sia uab fop pe pp ooo oao zao pao ao jsc ojsc cjsc pjsc llc tov too ооо оао зао пао ао тов тоо",
);
/** In front only where another one stands at the end: `SC Example SRL`. */
const leadingBesideOthers = wordSet("sc");
