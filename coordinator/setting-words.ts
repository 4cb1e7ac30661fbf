/**
 * What each setting does that is read once, at the coordinator's start, for the reference that people read
 * (ops/runbook/settings.md). Policies have their words in settings/schema. A test holds these against the schema.
 */
export const settingWords: Readonly<Record<string, string>> = {
  databaseUrl:
    "A Postgres server, 15 to 18, as postgres://user:password@host/database; several hosts, a primary and its standbys, as host1:5432,host2:5432. Commands read it, too; --database-url and DATABASE_URL override it. Default: an embedded one in the home folder.",
  contact:
    "Whom webmasters can write to: an e-mail address or a URL, shown on the contact page and, without publicUrl, in every request. The public web cannot be crawled without it or publicUrl.",
  publicUrl:
    "Where partners and sites reach the coordinator, when that is not where it listens. Its page /about-crawler is what requests name.",
  behindProxy:
    "A proxy in front terminates TLS and names the client in X-Forwarded-For; pages then always need a sign-in.",
  userAgent:
    "The User-Agent of every crawler. Default: Nearcrawl with its version, and the contact page at publicUrl or the contact.",
  signRequests:
    "Crawlers sign their requests to sites (Web Bot Auth, RFC 9421), naming the key set at publicUrl, which must be https.",
  signingKeyDays:
    "Days after which a crawler makes a new key to sign requests; the old one stays published until everything it signed has expired.",
  resolvers: "DNS servers of the coordinator, as address:port. Empty: the system's.",
  domainSets:
    "What this coordinator's crawlers crawl: hosts in one of these sets of domains and languages. Empty: every host.",
  allowSpecialPurpose:
    'Private, loopback and other special-purpose addresses that may be crawled: a list of ranges such as ["10.0.0.0/8"], or true for all of them. Each crawler has to allow them, too (allowRanges).',
  heartbeatSeconds: "Interval of a crawler's heartbeats; in a large fleet 3 ms per crawler, up to 30 s.",
  departureSeconds: "A crawler gone for this long hands its subnets to the next nearest.",
  "search.index":
    "Where searches are answered from: memory, in a process of its own, or database. Default: memory once there are 20,000 pages, while they fit into its limit.",
  "search.indexMegabytes":
    "Memory limit of the in-memory index, in MB (2^20 bytes). Beyond it the database answers. Default: half of the machine's free memory at its start.",
  "alerts.digestSeconds":
    "Alerts that begin or end within this many seconds share one message; one that is over by then is not sent.",
  "alerts.againMinutes":
    "An alert that recurs or names something new is sent at most once in this many minutes.",
  "alerts.webhooks":
    "Webhooks that alerts are sent to, each with `name`, `url`, `secret` (whsec_ and 24 to 64 bytes in base64) or `secretFile`, `least` (critical, warning or info: the lowest severity; default warning) and `allowSpecialPurpose` (true or ranges: the receiver may be at a private address). The secret may stand in the environment: `NEARCRAWL_WEBHOOK_SECRET_` and the name in capitals, with _ for -. See the runbook, monitoring.",
  "alerts.email.host": "The SMTP server for alerts. Without `[alerts.email]` no mail is sent.",
  "alerts.email.port": "587 for starttls, usually 465 for implicit.",
  "alerts.email.tls":
    "starttls: required; implicit: TLS from the first byte; none: for a server on this machine alone.",
  "alerts.email.user": "The user name at the server. Default: no sign-in.",
  "alerts.email.password": "Better in passwordFile, or in the environment (NEARCRAWL_SMTP_PASSWORD).",
  "alerts.email.passwordFile": "A file that holds the password and nothing else.",
  "alerts.email.from": "The sender: an address that the server may send for.",
  "alerts.email.to": "The recipients: up to 50 addresses.",
  "alerts.email.least": "From which severity on mail is sent.",
  databaseGigabytes:
    "Disk capacity of your own Postgres server, in GB (10^9 bytes): the alert disk-left then says how many days are left. For the embedded server the coordinator reads the disk itself.",
  logLevel: "The lowest level that is logged, as JSON lines on standard output.",
  "listen.host": "The address to listen at. Beyond loopback it needs TLS, or behindProxy.",
  "listen.port": "0 takes any free port. If it is taken, the next 20 ports are tried.",
  "listen.pagesPort":
    "Another port for pages, API and /health, without crawlers: there nobody waits when thousands of them connect in the same second. Default: none.",
  "tls.certificateFile": "PEM, with its chain. Renewed with the same key, it is shown within a minute.",
  "tls.keyFile": "PEM.",
  "access.anonymous":
    "What people who have not signed in may do: read or nothing. Default: read for who asks this machine directly, nothing once publicUrl, tls, behindProxy or listen.host is for others.",
  "delegation.seed": "Seeds the policy random.",
  "delegation.settleSeconds":
    "How long a new fleet may take to assemble and to measure itself before the first probe round.",
  "delegation.expectedCrawlers":
    "Probe rounds wait, for settleSeconds at most, until this many crawlers are connected.",
  "lease.addressRestSeconds":
    "How long an address rests before a crawler other than the last one sends it requests.",
  "finer.everySeconds":
    "How often hosts that resolve differently by location, and sub-ranges that measure differently, are searched for and checked.",
  "accuracy.subnetsPerHour":
    "Subnets that all crawlers probe to sample how near the delegations are; 0: none.",
  "trust.newcomerPages": "A crawler is new until this many of its pages were accepted.",
  "trust.watchedShare": "Suspicion from which a crawler is watched more closely.",
  "trust.watchedPages": "Number of pages for which it is then watched.",
  "trust.slotSeconds": "Several crawlers' fetches of one page are compared within this time.",
  "trust.alteredShare": "The share of altered pages that must be detected.",
  "trust.refetchPages": "Most pages of a distrusted crawler that others fetch again.",
  "registry.filesFolder":
    "A folder of this machine whose files may be imported from the pages. Default: only fetched files.",
  "registry.jobMegabytes": "Memory for one registry job.",
  "registry.jobMinutes":
    "Time for one registry job; a first fetch of everything over a slow line takes hours.",
  "registry.shrinkageWarningShare":
    "A plan in which a registry loses a larger share of its subnets or addresses has to be confirmed.",
  "backup.warnAfterHours":
    "The alert backup-too-old, when the last backup of the embedded database (once there was a first one) or the last archived log of a server is older. 0: never.",
  "parent.url": "The coordinator above this one.",
  "parent.key": "Printed there by `nearcrawl coordinators invite`.",
  "parent.certificatePin":
    "SHA-256 of the parent's public key, base64url. Default: public CAs vouch for its certificate.",
  "parent.owns": "What this coordinator owns: domains or address blocks.",
  "coordinators.everySeconds": "Interval of exchanges with the parent, while there is something to send.",
  "coordinators.mostWaitingUrls": "URLs of other coordinators that are kept until they are sent.",
  "coordinators.newHostsPerChildAndDay":
    "New hosts per day that one coordinator below this one may bring in.",
};
