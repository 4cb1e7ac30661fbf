/**
 * The order of the coordinator's rooms. A file may import from its own room and from earlier rooms. This includes types
 * and wiring (`start.ts`). `npm run house` prints violations, and `test/house` fails on them.
 */

interface Wing {
  readonly name: string;
  readonly rooms: readonly string[];
  /** Maximum number of lines in its files. A commit that raises it must say what is removed in return. */
  readonly most: number;
}

export const wings: readonly Wing[] = [
  {
    // Knows no other room. `core` and `protocol` are shared by the crawler, rir-import, db and the coordinator.
    name: "ground",
    rooms: ["core", "protocol", "database", "web", "ask"],
    most: 14_600,
  },
  {
    // Where things are located. Knows no crawl and no screen.
    name: "place",
    rooms: ["subnets", "domain-sets", "crawlers", "distances", "delegation", "balance"],
    most: 22_690,
  },
  {
    // From a URL to what is stored of its page.
    name: "crawl",
    rooms: [
      ...["batch", "frontier", "recrawl", "channels", "site-caps", "submissions"],
      ...["changes", "web-graph", "results", "trust", "federation"],
    ],
    most: 22_800,
  },
  {
    // What keeps the crawl running: crawlers' sessions, settings, access, releases, records.
    name: "run",
    rooms: ["gateway", "settings", "releases", "sharing", "access", "opt-outs", "journal", "registry"],
    most: 15_870,
  },
  {
    // What people ask. The only wing that knows all others.
    name: "tell",
    rooms: ["explore", "reports", "search", "find", "who", "sites", "fleet", "overview", "storage"],
    most: 29_790,
  },
];
