/** Works through sources two at a time, and never through two of one host at once: registries are not mirrors. */
const mostAtOnce = 2;

/** The results in the order of the items. `work` must not throw. */
export async function spreadOverHosts<Item, Result>(
  items: readonly Item[],
  hostOf: (item: Item) => string,
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results = new Array<Result>(items.length);
  const waiting = items.map((item, index) => ({ item, index, host: hostOf(item) }));
  const underWay = new Map<string, Promise<void>>();
  while (waiting.length > 0 || underWay.size > 0) {
    const next = underWay.size < mostAtOnce ? waiting.findIndex(({ host }) => !underWay.has(host)) : -1;
    if (next < 0) {
      await Promise.race(underWay.values());
      continue;
    }
    const [{ item, index, host }] = waiting.splice(next, 1) as [(typeof waiting)[number]];
    underWay.set(
      host,
      work(item).then((result) => {
        results[index] = result;
        underWay.delete(host);
      }),
    );
  }
  return results;
}
