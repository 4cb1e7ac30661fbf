/**
 * Text as texts are: word frequencies by Zipf (a word's frequency falls with its rank), the few short words of
 * a language first, then thousands of content words with its endings. Seeded: the same on every machine.
 */

/** A language of the benchmark's pages. */
interface TextLanguage {
  readonly code: string;
  readonly shortWords: readonly string[];
  readonly starts: readonly string[];
  readonly middles: readonly string[];
  readonly ends: readonly string[];
}

const words = (text: string): readonly string[] => text.split(" ");

export const textLanguages: readonly TextLanguage[] = [
  {
    code: "en",
    shortWords: words(
      "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one you were her all their we there been if more when will would who so no",
    ),
    starts: words(
      "cra pro sub del reg lat ser com int ver tra mo con re an dis ex pre par st pl br ch gr fl",
    ),
    middles: words("wl ar ect net iv ist en ent ul out er im ind od ain ess os ib ap orm ol ess an ick"),
    ends: words("ing ed s ation er ly ness able ment e ity ful ism al ous y or age ance ist es"),
  },
  {
    code: "de",
    shortWords: words(
      "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über so zum war haben nur oder",
    ),
    starts: words("ver be ge an aus ein vor ab um auf sch st gr kl br tr w h m l fr z über unter"),
    middles: words("ein arb ieb örd and und eit ahr irk icht ell ehr üch eis ost amm öff itt ach enk"),
    ends: words("en ung er e lich heit keit ungen isch t te es ern los schaft bar ig em end"),
  },
  {
    code: "fr",
    shortWords: words(
      "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont la aux avec son mais comme ou si leur y dont elle deux ces entre sans fait être cette on",
    ),
    starts: words("dé pré con com re ex in par tra pro ch gr pl br cr f m v l s t é im"),
    middles: words("ouv rés ent el ist ul oir ar ign ond ers ém ait and iqu orm im ort én oul"),
    ends: words("er ement ation és e es eur euse ique ité age ment ions ant ée aux if iste"),
  },
  {
    code: "es",
    shortWords: words(
      "de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha me si sin sobre este ya entre cuando todo esta ser son dos también fue había era muy años hasta",
    ),
    starts: words("des re con pre com ex en tra pro inter ch gr pl br c f m v l s t ac im"),
    middles: words("uch el est ent al ist ec or ar ond ers id ant and iqu orm im ort ol am"),
    ends: words("ar ación ado s mente os idad ero era ico ista es ando ía ó aba able oso ir"),
  },
];

/** Distinct content words of a language. */
const contentWords = 12_000;

/** Draws words of a language in their natural frequencies. */
export function wordSource(language: TextLanguage, random: () => number): () => string {
  const vocabulary = [...language.shortWords, ...contentVocabulary(language, random)];
  const upTo = cumulativeZipf(vocabulary.length);
  const total = upTo.at(-1)!;
  return () => vocabulary[firstAtLeast(upTo, random() * total)]!;
}

/** Some sentences of a page, with their marks and capitals; about so many words. */
export function sentences(nextWord: () => string, count: number, random: () => number): string {
  const parts: string[] = [];
  let left = count;
  while (left > 0) {
    const length = Math.min(left, 6 + Math.floor(random() * 18));
    const drawn = Array.from({ length }, nextWord);
    if (length > 12) drawn[5] += ",";
    drawn[0] = capital(drawn[0]!);
    parts.push(`${drawn.join(" ")}.`);
    left -= length;
  }
  return parts.join(" ");
}

export function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function contentVocabulary(language: TextLanguage, random: () => number): readonly string[] {
  const pick = (list: readonly string[]) => list[Math.floor(random() * list.length)]!;
  const found = new Set<string>();
  while (found.size < contentWords) {
    const middle = random() < 0.4 ? pick(language.middles) + pick(language.middles) : pick(language.middles);
    found.add(pick(language.starts) + middle + pick(language.ends));
  }
  return [...found];
}

/** Rank r has weight 1 / (r + 2.7) (Mandelbrot's form of Zipf's law). */
function cumulativeZipf(ranks: number): Float64Array {
  const upTo = new Float64Array(ranks);
  let sum = 0;
  for (let rank = 1; rank <= ranks; rank++) upTo[rank - 1] = sum += 1 / (rank + 2.7);
  return upTo;
}

function firstAtLeast(upTo: Float64Array, value: number): number {
  let [low, high] = [0, upTo.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (upTo[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
