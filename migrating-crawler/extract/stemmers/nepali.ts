/**
 * Nepali, after I. Shrestha and S. S. Dhakal, "A New Stemmer for Nepali Language" (2016), as snowballstem.org
 * describes it: one case marker goes, then verb endings as long as there are any.
 */
import { endingOf, endings, without } from "./ending.ts";

const markers = endings("मार्फत द्वारा सँगै संग सँग लाइ लाई पछि ले रत मै मा");
/** These stay after e. */
const genitives = endings("को का कि की कै");
const verbEndings = endings(
  "थिइस् हुनेछ हुन्छ नेछस् नेछन् इएकी इएका इएको िएकी िएका िएको इछन् िछन् इछस् िछस् एछन्",
  "ेछन् एछस् ेछस् छिन् छेस् छ्यौ थिन् थियो थियौ थिस् थ्यो थ्यौ दियो देखि देखी लान् माथि",
  "नेकै नेका नेको नेछौ होस् इन्छ िन्छ नेछु इछौ िछौ इस् िस् ियो इयो एका ेका एकी ेकी एकै ेकै",
  "एको ेको एछु ेछु एछौ ेछौ छन् छस् थिए पर् भयो हरु हरू िदा इदा िदो इदो िदै इदै नेछ इछ िछ एछ",
  "ेछ छु छे छौ थी थे दा दी दै दो नु ने यो यौ छ",
);

export function nepaliStem(lower: string): string {
  let word = withoutMarker(lower);
  for (;;) {
    word = withoutNasal(word);
    const ending = endingOf(word, verbEndings);
    if (ending === "") return word;
    word = without(word, ending);
  }
}

const allMarkers = endings(...markers, ...genitives);

function withoutMarker(word: string): string {
  const ending = endingOf(word, allMarkers);
  const rest = without(word, ending);
  return genitives.includes(ending) && /[एे]$/.test(rest) ? word : rest;
}

/** A sign at the end that only marks the person. */
function withoutNasal(word: string): string {
  return /(?:[यछन]ौ|थे)[ँं]$/.test(word) || /त्रै$/.test(word) ? word.slice(0, -1) : word;
}
