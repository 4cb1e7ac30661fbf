/**
 * What each setting does, for the file that people edit. `value` is the default, or an example where the default is
 * that nothing is set; the words say which. A test holds them against the schema.
 */

export interface SettingWords {
  readonly name: string;
  readonly words: string;
  readonly value: unknown;
}

interface SettingTable {
  /** Of the TOML table; empty: the settings before the first table. */
  readonly path: readonly string[];
  readonly words: string;
  /** The table itself need not be there, and switches something on when it is. */
  readonly isOptional: boolean;
  readonly settings: readonly SettingWords[];
}

const setting = (name: string, value: unknown, words: string): SettingWords => ({ name, value, words });

const wishes: SettingTable = {
  path: [],
  isOptional: false,
  words: `
------------------------------------------------------------------- what is never touched, and the network
`.trim(),
  settings: [
    setting(
      "denyDomains",
      ["example.org"],
      "Domains that are never contacted, with everything below them. Default: none.",
    ),
    setting(
      "domainSets",
      [".gr not shop.gr", "lang:el"],
      "What this crawler may be given: hosts in one of these sets of domains and languages. Default: any host.",
    ),
    setting(
      "denyRanges",
      ["203.0.113.0/24", "2001:db8::/32"],
      "Networks that are never contacted: an address, a/prefix or first-last. Default: none.",
    ),
    setting(
      "allowRanges",
      ["10.1.0.0/16", "192.168.7.5:8080"],
      "Private and other special networks that may be contacted all the same, with a port or ports if only those are\nmeant. Their ports may be probed, too; elsewhere 80 and 443 alone, and those of URLs that are being crawled.\nDefault: none; the crawler refuses all such networks.",
    ),
    setting(
      "proxy",
      "http://proxy.example.org:3128",
      "The proxy that sites are reached through: http://host:port (CONNECT) or socks5://host:port, with user:password@\nif it asks for them. Default: none. Takes a restart.",
    ),
    setting(
      "coordinatorProxy",
      "as-sites",
      'The way to the coordinator: "as-sites" (through `proxy`, if there is one), "none", or another proxy.\nDefault: "as-sites". Takes a restart.',
    ),
    setting(
      "otherCoordinatorUrls",
      ["wss://second.search.example/crawler"],
      "Further coordinators of the same fleet, for when the first cannot be reached; the same certificate or authorities are\nasked of them. A coordinator tells of the others by itself. Default: none. Takes a restart.",
    ),
    setting("resolvers", ["192.0.2.53:53"], "DNS servers to ask. Default: the system's. Takes a restart."),
    setting(
      "ipv6",
      false,
      "Whether sites are contacted over IPv6, too. Default: where this machine has a route for it, and no proxy is set.\nTakes a restart.",
    ),
    setting(
      "publicAddress",
      "198.51.100.7",
      "The address that sites see, when it is not the one that the coordinator sees. Default: not stated. Takes a restart.",
    ),
    setting(
      "contact",
      "abuse@example.org",
      "Whom sites may reach at your place: added as a comment to the User-Agent, which the coordinator states.\nDefault: not set. Takes a restart.",
    ),
    setting(
      "listAddress",
      true,
      "Whether this address is in the list on the coordinator's page by which sites verify that a request is ours.\nDefault: true. Takes a restart.",
    ),
    setting(
      "politenessFloorMs",
      1000,
      "Milliseconds between two requests to one host, at least; its robots.txt may ask for more. Default: 1000.\nTakes a restart.",
    ),
    setting(
      "politenessFastestMs",
      250,
      "Less than politenessFloorMs: a host that answers well and quickly is asked faster step by step, until it is left alone for\nthis long between two requests. Default: not set, no host is asked faster than politenessFloorMs. Takes a restart.",
    ),
    setting(
      "responseTimeFactor",
      5,
      "A host is left alone for at least this many times as long as its last answer took. Default: 5. Takes a restart.",
    ),
    setting(
      "requestsPerAddress",
      1,
      "Requests at a time to one address, whatever hosts are behind it. Default: 1. Takes a restart.",
    ),
    setting(
      "tdmFileFromUrls",
      10,
      "/.well-known/tdmrep.json of a site is asked for, once a day, where at least this many of its URLs are to be fetched at\nonce; 1: always, 0: never. Default: 10. Takes a restart.",
    ),
    setting(
      "probeMethods",
      ["head", "connect", "icmp"],
      "How the way to a site may be measured: an HTTP HEAD request, a TCP connection, an ICMP echo. Default: all three.",
    ),
    setting(
      "certificateFile",
      "/etc/ssl/certs/our-authority.pem",
      "A PEM file with certificates to trust for sites, besides the usual ones. Default: none. Takes a restart.",
    ),
    setting(
      "coordinatorCertificateFile",
      "/etc/nearcrawl/coordinator.pem",
      "A PEM file: the coordinator is trusted by this certificate alone. Default: not set. Takes a restart.",
    ),
  ],
};

const mebibyte = 1024 * 1024;

const limits: SettingTable = {
  path: ["limits"],
  isOptional: false,
  words:
    "------------------------------------------------------------------------------------------------ limits",
  settings: [
    setting(
      "pagesPerDay",
      1_000_000,
      "Pages per day, at most; robots.txt and the like count, too. Default: 1000000.",
    ),
    setting(
      "bytesPerDay",
      50 * 1024 * mebibyte,
      "Bytes per day, at most: everything that the crawler's connections carry, both ways. TCP and IP add 3 to 5 % to it.\nDefault: 53687091200 (50 GiB). At the limit downloads are broken off, and the day's end is waited for.",
    ),
    setting(
      "bytesPerMonth",
      500_000_000_000,
      "The same in a calendar month. Default: no limit but the day's.",
    ),
    setting(
      "kilobytesPerSecond",
      500,
      "The same in each second, in units of 1024 bytes. Default: no limit. Downloads under way are slowed down.",
    ),
    setting(
      "concurrentHosts",
      32,
      "Hosts that are dealt with at a time, each with one request at a time at most. Default: 32. No more are begun, whatever\nthe coordinator sends.",
    ),
    setting(
      "probesPerSecond",
      50,
      "Measurements of the way to sites and to other crawlers in any second, whatever the coordinator asks for: probes,\nconnections, echoes. One address is measured three times a second at most, with 20 connections or requests in all,\nand as many at a time as `concurrentHosts`, up to 16. 0: none. Default: 50.",
    ),
    setting(
      "openConnections",
      512,
      "Connections open at a time, the one to the coordinator included. Default: 512.",
    ),
    setting(
      "cpuShare",
      0.5,
      "Processor time, in processors: 0.5 is half of one processor, 2 is two. Measured over seconds, all threads of the\ncrawler together. Default: no limit (its low priority gives way to everything else).",
    ),
    setting(
      "memoryBytes",
      512 * mebibyte,
      "Bytes of memory of the process (RSS). From four fifths of it on fewer hosts are crawled, and a request begins only where\n10 MiB are left for it. With 512 MiB or more, or no limit, some 30 MB of it spare processor time (counts from the\nnext start). Default: no limit.",
    ),
    setting(
      "diskBytes",
      2048 * mebibyte,
      "Bytes on disk of everything in the crawler's folder. At the limit nothing more is fetched. Default: no limit but\nthe two below.",
    ),
    setting(
      "spoolBytes",
      256 * mebibyte,
      "Bytes on disk of the results that wait for the coordinator, of those. Default: 268435456 (256 MiB).",
    ),
    setting(
      "extractionThreads",
      1,
      "Threads that read pages, besides the main one. Default: 1. Takes a restart.",
    ),
    setting(
      "timeZone",
      "Europe/Athens",
      "The time zone of the hours below, and of the day's and the month's end. Default: the system's.",
    ),
    setting(
      "priority",
      19,
      "Scheduling priority as in nice(1): 19 gives way to everything else, 0 is usual. Default: 19. A system lets only\nan administrator's process go back to a higher one (a smaller number) without a restart.",
    ),
    setting(
      "ownNetwork",
      false,
      "Whether public addresses in the networks of this machine's own interfaces, and the one that it is seen from, may be\ncontacted. Default: false.",
    ),
    setting("icmp", true, "Whether the way to a site may be measured by ICMP echo (ping). Default: true."),
  ],
};

const night = "22:00-06:00";

const hours: SettingTable = {
  path: ["limits", "hours"],
  isOptional: true,
  words: `When the crawler may contact sites. A span over midnight belongs to the day that it begins on; several are
separated by commas; "always" and "never" say what they say. Once the table is there, a day without a line has
no hours. Default: no table, at any time.`,
  settings: [
    setting("monday", night, ""),
    setting("tuesday", night, ""),
    setting("wednesday", night, ""),
    setting("thursday", night, ""),
    setting("friday", night, ""),
    setting("saturday", "always", ""),
    setting("sunday", "always", ""),
  ],
};

const onlyWhenIdle: SettingTable = {
  path: ["limits", "onlyWhenIdle"],
  isOptional: true,
  words: `Only while the machine has nothing else to do. What a system does not tell (Linux tells all three, others less) holds
nothing back; \`nearcrawl crawler status\` says what is not told. Default: no table, the crawler does not look.`,
  settings: [
    setting(
      "loadPerProcessor",
      0.5,
      "Load average of the last minute per processor, without the crawler's own part. Default: 0.5.",
    ),
    setting("onMainsPower", true, "Not while the machine runs on its battery. Default: true."),
    setting(
      "usersAwayMinutes",
      10,
      "Minutes since anybody who is logged in touched a terminal; whoever sits at the screen counts as active.\n0: users are not looked at. Default: 10.",
    ),
  ],
};

const timeouts: SettingTable = {
  path: ["timeouts"],
  isOptional: false,
  words: `--------------------------------------------------------------------------------- time-outs
In milliseconds. They take a restart.`,
  settings: [
    setting("connectMs", 10_000, "To connect, TLS included. Default: 10000."),
    setting("firstByteMs", 20_000, "Until an answer begins. Default: 20000."),
    setting("idleMs", 10_000, "Of silence within an answer. Default: 10000."),
    setting("totalMs", 60_000, "For the whole answer. Default: 60000."),
  ],
};

const warc: SettingTable = {
  path: ["warc"],
  isOptional: true,
  words: `Keeps everything that is fetched on this machine, too, as WARC files. Default: no table, nothing is kept.
Takes a restart.`,
  settings: [
    setting("folder", "/var/lib/nearcrawl/warc", "Where they are kept. Has no default."),
    setting("maxBytes", 10 * 1024 * mebibyte, "Bytes of all files together. Default: 10737418240 (10 GiB)."),
    setting(
      "whenFull",
      "stop",
      'At that: "stop", or "remove-oldest" removes the oldest file. Default: "stop".',
    ),
    setting("fileBytes", 1_000_000_000, "Bytes after which another file is begun. Default: 1000000000."),
  ],
};

const fetched: SettingTable = {
  path: ["fetched"],
  isOptional: false,
  words: `--------------------------------------------------------------------------------------------- fetched
The list of what was asked of whom, and when, which \`fetched\` reads: URL, time, status, address. It is for you alone, to
answer whoever complains.`,
  settings: [
    setting("days", 30, "How long it is kept. 0: no list. Default: 30."),
    setting(
      "maxBytes",
      256 * mebibyte,
      "Bytes of its files together; the oldest is removed. Default: 268435456 (256 MiB).",
    ),
  ],
};

const place: SettingTable = {
  path: ["place"],
  isOptional: true,
  words: "Where this machine stands, for maps. Default: no table, not stated. Takes a restart.",
  settings: [
    setting("name", "Athens", "Of the town."),
    setting("country", "GR", "Two capital letters (ISO 3166)."),
    setting("latitude", 37.98, "Degrees, north is positive."),
    setting("longitude", 23.73, "Degrees, east is positive."),
  ],
};

const releases: SettingTable = {
  path: ["releases"],
  isOptional: false,
  words: `---------------------------------------------------------------------------------------------- releases
What of the crawler's new releases is taken. All of them are signed, and one that is not well gives way to the one
before it by itself. A release that was revoked is ended whatever stands here.`,
  settings: [
    setting(
      "policy",
      "follow",
      '"follow" takes a release when it is offered, "delay" some hours later, "pin" stays with one version, "ask" takes\nonly what `accept` lists. Default: "follow".',
    ),
    setting("delayHours", 24, 'For "delay": hours after the offer. Default: 24.'),
    setting("pin", "1.4.0", 'For "pin": the version. Default: not set, what runs stays.'),
    setting("accept", ["1.5.0"], 'For "ask": the versions that may be taken. Default: none.'),
    setting("refuse", ["1.4.1"], "Versions that are never taken. Default: none."),
  ],
};

// What `[status]` of the settings file says, for settings/setting-words.ts.

const statusTable: SettingTable = {
  path: ["status"],
  isOptional: false,
  words: `---------------------------------------------------------------------------------------------- status
\`nearcrawl crawler status\` needs none of this. Takes a restart.`,
  settings: [
    {
      name: "port",
      value: 7412,
      words:
        "A page that shows the same at http://127.0.0.1:7412/, to browsers on this machine alone (to everybody who is\nlogged in on it). Only the link that `status` prints can pause and resume. Where the port is taken, one of the next 20\nis. 0: no page. Default: 7412.",
    },
  ],
};

export const settingTables: readonly SettingTable[] = [
  wishes,
  limits,
  hours,
  onlyWhenIdle,
  releases,
  statusTable,
  timeouts,
  fetched,
  warc,
  place,
];
