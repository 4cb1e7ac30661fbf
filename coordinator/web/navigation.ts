/**
 * The navigation: three groups of at most six entries, some of them with tabs. It is made of what the operations state of their
 * pages. Any other page belongs to the longest path that it lies below.
 */
import { type Actor, mayDo, type Scope } from "#core/actor";

interface NavigationTab {
  readonly path: string;
  readonly name: string;
  /** As the page's operation has it. Null: for everybody. */
  readonly needs: Scope | null;
  /** Further paths whose pages stand here. */
  readonly also?: readonly string[];
}

export interface NavigationEntry extends NavigationTab {
  /** The first is the entry's own page; left out: it has no others. */
  readonly tabs?: readonly NavigationTab[];
}

export interface NavigationGroup {
  readonly name: string;
  readonly entries: readonly NavigationEntry[];
}

/** What an operation states of its page. */
export interface PageEntry {
  /** Null: it is in no group, and only `find` leads to it. */
  readonly group: keyof typeof groupNames | null;
  /** The order within the group, below 100. */
  readonly order?: number;
  readonly entry: string;
  /** The page is one of several of its entry, and this is its tab's name. */
  readonly tab?: string;
  /** Further paths whose pages belong here. */
  readonly also?: readonly string[];
  /** Left out: the page of the operation. */
  readonly path?: string;
}

/** What the navigation reads of an operation. */
export interface Listed {
  readonly path: string;
  readonly page?: string | null;
  readonly needs: Scope | null;
  readonly summary: string;
  readonly navigation?: PageEntry;
  readonly alsoFound?: string;
}

const groupNames = { Crawl: "Crawl", Fleet: "Fleet", Sites: "Sites and webmasters" };

const groupKeys = Object.keys(groupNames);

/** The pages that operations place, in the order of the groups and within them. Those in no group come last. */
export const placedPages = (operations: readonly Listed[]) =>
  operations
    .flatMap(({ navigation, page, path, ...one }) => {
      if (navigation === undefined) return [];
      const { group, order = 0 } = navigation;
      const groupName = group && groupNames[group];
      const place = group === null ? Number.POSITIVE_INFINITY : groupKeys.indexOf(group) * 100 + order;
      return [{ ...one, path: page ?? path, groupName, place, ...navigation }];
    })
    .sort((a, b) => (a.place < b.place ? -1 : Number(a.place > b.place)));

export function navigationOf(operations: readonly Listed[]): readonly NavigationGroup[] {
  const pages = placedPages(operations);
  return Object.entries(groupNames).map(([key, name]) => {
    const own = pages.filter(({ group }) => group === key);
    const entries = [...new Set(own.map(({ entry }) => entry))].map((entry) => {
      const tabs = own
        .filter((one) => one.entry === entry)
        .map(({ path, tab, needs, also = [] }) => ({ path, name: tab ?? entry, needs, also }));
      return { ...tabs[0]!, name: entry, ...(tabs.length > 1 ? { tabs } : {}) };
    });
    return { name, entries };
  });
}

/**
 * What this person may open. An entry whose own page is not for them goes by its first tab that is. A partner's crawlers, of
 * which the account lists all, come first.
 */
export function navigationFor(
  actor: Actor,
  navigation: readonly NavigationGroup[],
): readonly NavigationGroup[] {
  const own = ownCrawlers(actor);
  const groups = own.length > 0 ? [{ name: "Your crawlers", entries: own.map(crawlerTab) }] : [];
  for (const { name, entries } of navigation) {
    const open = entries.flatMap((entry) => openEntry(entry, actor) ?? []);
    if (open.length > 0) groups.push({ name, entries: open });
  }
  return groups;
}

function openEntry(entry: NavigationEntry, actor: Actor): NavigationEntry | null {
  if (entry.tabs === undefined) return mayDo(actor, entry.needs) ? entry : null;
  const tabs = entry.tabs.filter(({ needs }) => mayDo(actor, needs));
  const [first] = tabs;
  if (first === undefined) return null;
  const name = first.path === entry.path ? entry.name : first.name;
  return { ...first, name, tabs };
}

/** What a partner has in place of the rest. */
export function ownCrawlers({ role, crawlers }: Actor): readonly string[] {
  return role === "partner" ? crawlers.slice(0, 5) : [];
}

function crawlerTab(name: string): NavigationEntry {
  return { path: `/crawlers/${encodeURIComponent(name)}`, name, needs: null };
}

export interface NavigationPlace {
  readonly group: NavigationGroup;
  readonly entry: NavigationEntry;
  /** Null: the entry has no tabs. */
  readonly tab: NavigationTab | null;
}

/** Of a page in these groups; null: it stands in none of them (an account, an error). */
export function placeOf(path: string, groups: readonly NavigationGroup[]): NavigationPlace | null {
  let place: NavigationPlace | null = null;
  let longest = 0;
  for (const group of groups) {
    for (const entry of group.entries) {
      for (const one of entry.tabs ?? [entry]) {
        const length = lengthWithin(path, one);
        if (length <= longest) continue;
        longest = length;
        place = { group, entry, tab: entry.tabs === undefined ? null : one };
      }
    }
  }
  return place;
}

/** Of the longest of its paths that the page lies below; the overview's has nothing below it. 0: none. */
function lengthWithin(path: string, { path: own, also = [] }: NavigationTab): number {
  const within = [own, ...also].filter((one) => path === one || (one !== "/" && path.startsWith(`${one}/`)));
  return Math.max(0, ...within.map(({ length }) => length));
}
