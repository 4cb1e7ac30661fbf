/** Which files each thread reads: stretches of the list, in its order, of about the same amount of text. */

/** About how much a compressed dump unpacks to. Measured on RIPE's, ARIN's and the statistics: 4 to 9. */
const unpackedTimes = 8;

export interface WeighedFile {
  readonly file: string;
  readonly bytesOnDisk: number;
  readonly isPacked: boolean;
}

export const textBytesOf = ({ bytesOnDisk, isPacked }: WeighedFile) =>
  isPacked ? bytesOnDisk * unpackedTimes : bytesOnDisk;

/**
 * At most `threads` stretches, none of them empty. A file is never divided. The longest stretch is as short as it
 * can be, found by halving the bound on its length.
 */
export function shareOut(files: readonly WeighedFile[], threads: number): readonly (readonly string[])[] {
  const weights = files.map(textBytesOf);
  let low = Math.max(0, ...weights);
  let high = weights.reduce((sum, weight) => sum + weight, 0);
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (stretches(files, middle).length <= threads) high = middle;
    else low = middle + 1;
  }
  return stretches(files, high);
}

/** As few stretches as a bound on their text allows. */
function stretches(files: readonly WeighedFile[], bound: number): readonly (readonly string[])[] {
  const found: string[][] = [];
  let room = 0;
  for (const file of files) {
    const weight = textBytesOf(file);
    if (found.length === 0 || weight > room) {
      found.push([]);
      room = bound;
    }
    found.at(-1)?.push(file.file);
    room -= weight;
  }
  return found;
}
