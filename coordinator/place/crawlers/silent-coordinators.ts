/** Whether another coordinator is silent, by its beats and this one's own clock. */

/**
 * A coordinator that holds its lock counts as gone if it beats fewer times than this, over this period and this number of our
 * looks. Counting looks excludes the time in which the database itself was stopped. Earlier versions beat every 2 s.
 */
const silentMs = 8000;

const silentLooks = 8;

const leastBeats = 3;

/** Maximum looks kept, since notifications cause more looks than there are beats. */
const mostLooks = 200;

export interface Seen {
  /** Oldest first, timed by this coordinator's own clock. */
  readonly looks: readonly { readonly beats: number; readonly atMs: number }[];
  readonly goneMs: number | null;
}

/** Keeps only what `isSilent` needs. */
export function recentLooks(looks: Seen["looks"]): Seen["looks"] {
  const last = looks.at(-1)!.atMs;
  const isSpare = (at: number) =>
    looks.length - at > silentLooks + 1 && last - looks[at + 1]!.atMs >= silentMs;
  let first = 0;
  while (isSpare(first)) first += 1;
  return looks.slice(Math.max(first, looks.length - mostLooks));
}

export function isSilent(looks: Seen["looks"]): boolean {
  const [first, last] = [looks[0]!, looks.at(-1)!];
  return (
    looks.length > silentLooks && last.atMs - first.atMs >= silentMs && last.beats - first.beats < leastBeats
  );
}
