/**
 * The coordinator's rooms in one order. A file imports from its own room and from rooms that stand before it, types and wiring
 * (`start.ts`) included. `npm run house` prints where that is broken, and `test/house.test` fails there.
 */

interface Wing {
  readonly name: string;
  readonly rooms: readonly string[];
  /** The lines that its files may have in all. Whoever raises it says in the commit what goes instead. */
  readonly most: number;
}

export const wings: readonly Wing[] = [
  {
    // Knows no room. `core` and `protocol` are where the crawler, rir-import, db and the coordinator meet.
    name: "ground",
    rooms: ["core", "protocol", "database", "web", "ask"],
    most: 14_970,
  },
  {
    // Where things are: knows no crawl and no screen.
    name: "place",
    rooms: ["subnets", "domain-sets", "crawlers", "distances", "delegation", "balance"],
    most: 23_820,
  },
  {
    // From a URL to what is stored of its page.
    name: "crawl",
    rooms: [
      ...["batch", "frontier", "recrawl", "channels", "site-caps", "submissions"],
      ...["changes", "web-graph", "results", "trust", "federation"],
    ],
    most: 23_400,
  },
  {
    // What keeps it running: crawlers' sessions, settings, access, releases, records.
    name: "run",
    rooms: ["gateway", "settings", "releases", "sharing", "access", "opt-outs", "journal", "registry"],
    most: 16_190,
  },
  {
    // What people ask. The only wing that knows all the others.
    name: "tell",
    rooms: ["explore", "reports", "search", "find", "who", "sites", "fleet", "overview", "storage"],
    most: 32_140,
  },
];
