/**
 * Descriptions of the settings that are read once at the start, for the reference (ops/runbook/settings.md). A test compares
 * their names with the schema. Policies are described in settings/schema.
 */
export const settingWords: Readonly<Record<string, string>> = {
  databaseUrl:
    "A Postgres server, 15 to 18, as postgres://user:password@host/database; several hosts, a primary and its " +
    "standbys, as host1:5432,host2:5432. Commands read it, too; --database-url and DATABASE_URL override it. " +
    "Default: an embedded one in the home folder.",
  contact:
    "Whom webmasters can write to: an e-mail address or a URL, shown on the contact page and, without publicUrl, " +
    "in every request. The public web cannot be crawled without it or publicUrl.",
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
    "Private, loopback and other special-purpose addresses that may be crawled: a list of ranges such as " +
    '["10.0.0.0/8"], or true for all of them. Each crawler has to allow them, too (allowRanges).',
  heartbeatSeconds: "Interval of a crawler's heartbeats; in a large fleet 3 ms per crawler, up to 30 s.",
  departureSeconds: "A crawler gone for this long hands its subnets to the next nearest.",
  "search.engine":
    "What answers searches. fts5: an index in a file beside this coordinator, which a process of its own keeps. opensearch: " +
    "the index at search.url, which all coordinators share, and which has the texts from then on: Postgres drops each that it " +
    "has confirmed. Back to fts5, pages are fetched again for their texts. All coordinators of a database have the same.",
  "search.url":
    "OpenSearch's address, with the index as its path: https://search.example.org:9200/pages. Credentials come from the " +
    "environment: NEARCRAWL_OPENSEARCH_USER and NEARCRAWL_OPENSEARCH_PASSWORD, or NEARCRAWL_OPENSEARCH_AUTHORIZATION.",
  "search.ca":
    "A file with the authority that signed OpenSearch's certificate, in PEM form. Default: the public ones.",
  "alerts.digestSeconds":
    "Alerts that begin or end within this many seconds share one message; one that is over by then is not sent.",
  "alerts.againMinutes":
    "An alert that recurs or names something new is sent at most once in this many minutes.",
  "alerts.webhooks":
    "Webhooks that alerts are sent to, each with `name`, `url`, `secret` (whsec_ and 24 to 64 bytes in base64) " +
    "or `secretFile`, `least` (critical, warning or info: the lowest severity; default warning) and " +
    "`allowSpecialPurpose` (true or ranges: the receiver may be at a private address). The secret may stand in " +
    "the environment: `NEARCRAWL_WEBHOOK_SECRET_` and the name in capitals, with _ for -. See the runbook, " +
    "monitoring.",
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
    "Disk capacity of your own Postgres server, in GB (10^9 bytes): the alert disk-left then says how many days " +
    "are left. For the embedded server the coordinator reads the disk itself.",
  logLevel: "The lowest level that is logged, as JSON lines on standard output.",
  "listen.host": "The address to listen at. Beyond loopback it needs TLS, or behindProxy.",
  "listen.port": "0 takes any free port. If it is taken, the next 20 ports are tried.",
  "listen.pagesPort":
    "Another port for pages, API and /health, without crawlers: there nobody waits when thousands of them connect in the same second. Default: none.",
  "tls.certificateFile": "PEM, with its chain. Renewed with the same key, it is shown within a minute.",
  "tls.keyFile": "PEM.",
  "access.anonymous":
    "What people who have not signed in may do: read or nothing. Default: read for who asks this machine " +
    "directly, nothing once publicUrl, tls, behindProxy or listen.host is for others.",
  "delegation.thresholdMs":
    "With the policy ipmicra, a crawler that answers within this time takes the subnet, and no other is asked (IPMicra, section 4.5).",
  "delegation.concurrentRounds":
    "Maximum concurrent probe rounds. Rounds that run together cannot learn from each other (our judgement, many more would learn little from each other).",
  "delegation.getFirstFromUrls":
    "A new subnet with at least this many waiting URLs is crawled while it is being probed; 0 means never (our " +
    "judgement, below it the first fetch saves less than a probe costs).",
  "probe.tries":
    "The most measurements in one probe; two that agree end it early, and the smallest time counts (our " +
    "judgement, the smallest of a few is the path, without its queues).",
  "probe.deadlineMs":
    "A crawler without an answer by then counts as unable to reach the subnet (our judgement, several times the slowest path round the world).",
  "probe.pace.perCrawlerAtOnce":
    "The most probes that one partner's machine has in progress (our judgement, nothing that a home connection notices).",
  "probe.pace.atOnce": "The most probes that the whole fleet has in progress (our judgement).",
  "lease.seconds":
    "How long a crawler has to fetch what it was given. After that the lease returns and may go to another crawler (our judgement).",
  "lease.urlsPerHost":
    "How many URLs of one host a crawler gets together, which keeps its connection in use (our judgement).",
  "lease.hostsPerRequest":
    "The most hosts that a crawler gets at once when it asks for work (our judgement).",
  "frontier.worthShare":
    "Of the hosts that a crawler gets, the share chosen by how early their best due URL comes in the order. The " +
    "rest have been due longest, so that none is forgotten. At 0 hosts simply take turns; the order " +
    "breadth-first ignores it (our judgement; measured, test/bench/results/anansi.md).",
  "frontier.linkTypeChecks":
    "How many of a page's links to its own site are checked by HEAD, at the host's usual pace; links that are " +
    "not pages are not fetched. Each check takes as long as a fetch; 0 means none (our judgement; Anansi, " +
    "section 4.2, asks them all).",
  "balance.everySeconds":
    "How often loads are checked and subnets moved (our judgement, loads change over hours).",
  "balance.movesPerPass":
    "The most subnets that move, and the most probes made for them, in one pass (our judgement, a minute's work for the fleet).",
  "recalibration.slowerThanFactor":
    "A fetch counts as slow when it takes this many times its host's usual time. Smaller values notice more and " +
    "probe more (IPMicra, section 4.4; the figure is measured, test/bench/results/calibration.md).",
  "recalibration.timesInARow":
    "A subnet is probed again after this many slow fetches in a row, or more where slow fetches are common " +
    "(IPMicra, section 4.4, more than one time continuously).",
  "recalibration.everySeconds": "The longest that a newly slow host waits for its round (our judgement).",
  "trust.newcomerShare":
    "The share of a new crawler's first pages that another crawler fetches as well, for comparison (measured, test/bench/results/trust.md).",
  "trust.threshold":
    "A crawler is no longer trusted when the evidence against it (a natural logarithm of likelihoods) reaches this (measured, test/bench/results/trust.md).",
  "recrawl.groups":
    "With iir and icr, hosts and their channels are divided by how often they change into this many groups, each " +
    "with an interval of its own (SARSS, section 4).",
  "recrawl.encourageRate":
    "A group that succeeds more often than before gets this fraction of its interval. Smaller values find free " +
    "capacity sooner and overshoot more (our judgement, SARSS names no value).",
  "recrawl.smallestMultiple":
    "With iir and icr, a group that would be more urgent than the one before it gets this many times its interval (our judgement, SARSS names no value).",
  "recrawl.biggestMultiple":
    "With iir and icr, the longest interval of a group, in multiples of the interval of the group before it (our judgement, SARSS names no value).",
  "recrawl.visitsPerChange":
    "With optimal, the most fetches of a page for each change expected of it. Small values cost freshness: what " +
    "slow pages may not have goes to those that change too fast (worked out, test/recrawl/optimal-rates; SARSS " +
    "names 2 (section 4.3)).",
  "recrawl.usualChangesPerDay":
    "How often a page is expected to change until its visits or its host say otherwise (Cho and Garcia-Molina, " +
    "VLDB 2000: half of the pages change within 50 days).",
  "recrawl.everySeconds":
    "How often plans are made; iir and icr plan again only when half of the most urgent hosts and channels have had six updates (our judgement).",
  "pace.everySeconds":
    "How often each crawler's due work is counted. Its places for hosts follow that count, up and down (our judgement).",
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
    "The alert backup-too-old, when the last backup of the embedded database (once there was a first one) or the " +
    "last archived log of a server is older. 0: never.",
  "parent.url": "The coordinator above this one.",
  "parent.key": "Printed there by `nearcrawl coordinators invite`.",
  "parent.certificatePin":
    "SHA-256 of the parent's public key, base64url. Default: public CAs vouch for its certificate.",
  "parent.owns": "What this coordinator owns: domain sets.",
  "coordinators.everySeconds": "Interval of exchanges with the parent, while there is something to send.",
  "coordinators.mostWaitingUrls": "URLs of other coordinators that are kept until they are sent.",
  "coordinators.newHostsPerChildAndDay":
    "New hosts per day that one coordinator below this one may bring in.",
};
