/**
 * What each setting does that is read once, at the coordinator's start, for the reference that people read
 * (ops/runbook/settings.md). Policies have their words in settings/schema. A test holds these against the schema.
 */
export const settingWords: Readonly<Record<string, string>> = {
  databaseUrl:
    "A Postgres server, 15 to 18, as postgres://user:password@host/database; several hosts, a primary and its standbys, as host1:5432,host2:5432. Commands read it, too; --database-url and DATABASE_URL win over it. Left out: an embedded one in the home folder.",
  contact:
    "Whom webmasters can write to: an e-mail address or a URL, shown on the contact page and, without publicUrl, in every request. Nobody crawls the public web without it or publicUrl.",
  publicUrl:
    "Where partners and sites reach the coordinator, when that is not where it listens. Its page /about-crawler is what requests name.",
  behindProxy:
    "Something in front does TLS, and says in X-Forwarded-For who asks; pages then need a sign-in from everywhere.",
  userAgent:
    "What every crawler says to sites. Left out: Nearcrawl with its version, and the contact page at publicUrl or the contact.",
  signRequests:
    "Crawlers sign their requests to sites (Web Bot Auth, RFC 9421), naming the key set at publicUrl, which must be https.",
  signingKeyDays:
    "After so many days a crawler makes another key to sign requests with; the one before stays published until all that it signed is out of date.",
  resolvers: "DNS servers of the coordinator, as address:port. Empty: the system's.",
  domainSets:
    "What this coordinator's crawlers crawl: hosts in one of these sets of domains and languages. Empty: every host.",
  allowSpecialPurpose:
    'Private, loopback and other special-purpose addresses that may be crawled: a list of ranges such as ["10.0.0.0/8"], or true for all of them. Each crawler has to allow them, too (allowRanges).',
  heartbeatSeconds:
    "Between two signs of life of a crawler; in a large fleet 3 ms for each crawler, up to 30 s.",
  departureSeconds: "A crawler that is gone for so long hands its subnets to those that come next.",
  "search.index":
    "Where searches are answered from: memory, in a process of its own, or database. Left out: from memory once there are 20,000 pages, as long as they fit into what it may have.",
  "search.indexMegabytes":
    "What the process of the index in memory may take, in MB (2^20 bytes). Beyond it the database answers. Left out: half of what the machine has free when it starts.",
  "alerts.digestSeconds":
    "Alerts that begin or end within so many seconds are one message, and one that is over by then is in none.",
  "alerts.againMinutes":
    "An alert that ends and begins again, or names something more, is sent once in so many minutes.",
  "alerts.webhooks":
    "Webhooks that alerts are sent to, each with `name`, `url`, `secret` (whsec_ and 24 to 64 bytes in base64) or `secretFile`, `least` (critical, warning or info: from which severity on; warning where it is left out) and `allowSpecialPurpose` (true or ranges: the receiver may be at a private address). The secret may stand in the environment: `NEARCRAWL_WEBHOOK_SECRET_` and the name in capitals, with _ for -. See the runbook, monitoring.",
  "alerts.email.host": "The SMTP server that alerts are sent by. Without `[alerts.email]` there is no mail.",
  "alerts.email.port": "587 for starttls, mostly 465 for implicit.",
  "alerts.email.tls":
    "starttls: asked for, and needed; implicit: TLS from the first byte; none: for a server on this machine alone.",
  "alerts.email.user": "Whom the server knows. Left out: it asks for nothing.",
  "alerts.email.password": "Better in passwordFile, or in the environment (NEARCRAWL_SMTP_PASSWORD).",
  "alerts.email.passwordFile": "A file that holds the password and nothing else.",
  "alerts.email.from": "The sender: an address that the server may send for.",
  "alerts.email.to": "Who is told: up to 50 addresses.",
  "alerts.email.least": "From which severity on mail is sent.",
  databaseGigabytes:
    "What a Postgres server of one's own has room for, in GB (10^9 bytes): the alert disk-left then tells how many days are left. Of the embedded one the coordinator sees its disk itself.",
  logLevel: "What is logged at least, as JSON lines on standard output.",
  "listen.host": "The address to listen at. Beyond loopback it needs TLS, or behindProxy.",
  "listen.port": "0 takes any free port. The next 20 ports are tried where it is taken.",
  "listen.pagesPort":
    "A further port for pages, API and /health, with no crawlers on it: where thousands connect in the same second, nobody waits behind them here. Not set: none.",
  "tls.certificateFile": "PEM, with its chain. Read at the start.",
  "tls.keyFile": "PEM.",
  "access.anonymous":
    "What people may who have not signed in: read or nothing. Left out: read where only this machine reaches the pages, else nothing.",
  "delegation.seed": "Seeds the policy random.",
  "delegation.settleSeconds":
    "How long a new fleet may take to assemble and to measure itself before the first probe round.",
  "delegation.expectedCrawlers":
    "Probe rounds wait, for settleSeconds at most, until so many crawlers are connected.",
  "probe.method": "How crawlers probe: an HTTP HEAD, a TCP connect, or a ping.",
  "lease.addressRestSeconds":
    "An address is left alone for so long before another crawler than the last one asks it.",
  "finer.everySeconds":
    "How often hosts that resolve differently by place, and parts of subnets that measure apart, are looked for and looked at.",
  "accuracy.subnetsPerHour":
    "Subnets that all crawlers probe as samples of how near the delegations are; 0: none.",
  "trust.newcomerPages": "A crawler is new until so many of its pages were taken.",
  "trust.watchedShare": "Suspicion from which a crawler is watched more closely.",
  "trust.watchedPages": "Pages for which it then is.",
  "trust.slotSeconds": "Comparisons of one page by several crawlers fall into one span of this length.",
  "trust.alteredShare": "The share of altered pages that is to be found out.",
  "trust.refetchPages": "Pages of a crawler that is not trusted any more, fetched again by others at most.",
  "registry.filesFolder":
    "A folder of this machine whose files may be imported from the pages. Left out: only what was fetched.",
  "registry.jobMegabytes": "Memory for one registry job.",
  "registry.jobMinutes":
    "Time for one registry job; a first fetch of everything over a slow line takes hours.",
  "registry.shrinkageWarningShare":
    "A plan in which a registry loses a larger share of its subnets or addresses has to be confirmed.",
  "backup.warnAfterHours":
    "The alert backup-too-old, when the last backup of the embedded database (once there was a first one) or the last archived log of a server is older. 0: never.",
  "parent.url": "The coordinator above this one.",
  "parent.key": "What `nearcrawl coordinators invite` printed there.",
  "parent.certificatePin":
    "SHA-256 of the parent's public key, base64url. Left out: its certificate is checked by the public authorities.",
  "parent.owns": "What this coordinator owns: domains or address blocks.",
  "coordinators.everySeconds": "Between two exchanges with the parent, while there is something to tell.",
  "coordinators.mostWaitingUrls": "URLs of other coordinators that are kept until they are told.",
  "coordinators.newHostsPerChildAndDay": "New hosts that one coordinator below this one may bring in, a day.",
};
