/** The API of who crawls what, and why: what it takes and answers. */
import { z } from "zod";
import { probeMethods } from "#protocol/messages";
import { orderNames } from "../frontier/order/strategies.ts";
import { optOutScopes } from "../opt-outs/opt-out.ts";
import { statedCountSchema, statedUsesSchema } from "../results/stated-uses-api.ts";
import { type ApiOperations, dateTime, errorAnswer } from "../web/api-operation.ts";

const roundCause = z
  .enum([
    "new-subnet",
    "slow-fetches",
    "crawler-left",
    "drained",
    "overload",
    "operator",
    "retry",
    "joined",
    "denied",
    "differs-by-place",
    "measures-apart",
    "domain-set",
    "review",
    "refresh",
    "sampled",
  ])
  .meta({ id: "RoundCause", description: "Why the round was held." });

const changeCause = z
  .enum([
    "own-subnet",
    "probe-round",
    "first-fetch",
    "overload",
    "home",
    "crawler-left",
    "drained",
    "joined",
    "operator",
    "crawler-moved",
    "differs-by-place",
    "measures-apart",
    "domain-set",
    "new-subnet",
    "slow-fetches",
    "retry",
    "denied",
    "review",
    "refresh",
    "sampled",
    "joined-again",
  ])
  .meta({
    id: "ChangeCause",
    description:
      "Why a delegation passed to another crawler: of the delegation, or of the round that decided it; joined-again: what had a delegation of its own goes with its subnet again.",
  });

const crawlerName = z
  .strictObject({ crawlerId: z.int(), name: z.string(), state: z.enum(["online", "offline", "draining"]) })
  .meta({ id: "CrawlerName" });

const holderName = z
  .strictObject({ holderId: z.int(), name: z.string(), handle: z.string().nullable() })
  .meta({ id: "HolderName" });

// What the API says of a subnet: its range, its crawler, and why that crawler has it.

export const delegationCause = z
  .enum([
    "own-subnet",
    "probe-round",
    "first-fetch",
    "overload",
    "home",
    "crawler-left",
    "drained",
    "joined",
    "operator",
    "crawler-moved",
    "differs-by-place",
    "measures-apart",
    "domain-set",
  ])
  .meta({ id: "DelegationCause", description: "Why this crawler has it." });

const ownDelegation = z
  .strictObject({
    crawler: crawlerName,
    measured: z.boolean().describe("False: nobody has answered, or nobody was compared; to be tried again."),
    rttMs: z.number().nullable(),
    runnerUp: crawlerName.nullable(),
    runnerUpRttMs: z.number().nullable(),
    cause: delegationCause,
    since: dateTime(),
    roundId: z.int().nullable(),
  })
  .meta({ id: "OwnDelegation" });

const chainSubnet = z
  .strictObject({
    subnetId: z.int(),
    range: z.string().describe("A CIDR block, or `first - last` where the range is none."),
    unary: z.boolean().describe("One address only: skipped for its parent."),
    name: z.string(),
    holder: holderName.nullable(),
    country: z.string().nullable(),
    registry: z.string(),
    delegation: ownDelegation.nullable(),
  })
  .meta({ id: "ChainSubnet" });

const publishedReport = z
  .strictObject({
    source: z.string().describe("A cloud, or a geofeed by its URL."),
    place: z.string().nullable().describe("Null: the list names the range without a single place."),
    range: z.string().describe("As it was published."),
    within: z.string().nullable().describe("The range of the registry object that names the geofeed."),
    listDate: z.string().nullable().describe("Of the list; ISO date."),
  })
  .meta({ id: "PublishedReport" });

const effectiveDelegation = z
  .strictObject({
    crawler: crawlerName,
    measured: z.boolean(),
    rttMs: z.number().nullable(),
    runnerUp: crawlerName.nullable(),
    runnerUpRttMs: z.number().nullable(),
    cause: delegationCause,
    since: dateTime(),
    roundId: z.int().nullable(),
    subnetId: z.int(),
    range: z.string(),
    inherited: z.boolean().describe("True: of a less specific subnet."),
    finer: z
      .enum(["host", "part"])
      .nullable()
      .describe("Set where it is not the subnet's: for one host by itself, or for a part of the subnet."),
  })
  .meta({
    id: "EffectiveDelegation",
    description: "Own, or of the nearest less specific subnet that has one.",
  });

const finerReport = z
  .strictObject({
    type: z.enum(["host", "part"]),
    subnetId: z.int(),
    range: z.string().nullable(),
    host: z.string().nullable(),
    crawler: crawlerName,
    measured: z.boolean(),
    rttMs: z.number().nullable(),
    runnerUp: crawlerName.nullable(),
    runnerUpRttMs: z.number().nullable(),
    subnetRttMs: z.number().nullable().describe("What the subnet's own crawler measured in the same round."),
    cause: delegationCause,
    since: dateTime(),
    roundId: z.int().nullable(),
    seen: z
      .array(z.strictObject({ crawler: z.string().nullable(), addresses: z.array(z.string()) }))
      .describe("What each vantage point was told, for a host; crawler null is the coordinator."),
    foundAt: dateTime(),
  })
  .meta({
    id: "FinerReport",
    description:
      "A delegation finer than a subnet: a host whose name resolves differently by place, or a part of a leaf that measures apart.",
  });

const roundProbe = z
  .strictObject({
    ordinal: z.int(),
    crawler: crawlerName,
    method: z.enum(probeMethods),
    outcome: z.string(),
    rttMs: z.number().nullable(),
    detail: z.string(),
  })
  .meta({ id: "RoundProbe" });

const ruledOut = z
  .strictObject({
    crawler: crawlerName,
    lowerBoundMs: z.number().nullable().describe("The least RTT that the triangle inequality leaves it."),
    ruledOut: z.boolean(),
  })
  .meta({ id: "RuledOut" });

const probeRound = z
  .strictObject({
    roundId: z.int(),
    subnetId: z.int(),
    cause: roundCause,
    policy: z.string(),
    parameters: z.looseObject({}),
    targetUrl: z.string(),
    targetAddress: z.string(),
    startedAt: dateTime(),
    decidedAt: dateTime(),
    crawler: crawlerName.nullable(),
    runnerUp: crawlerName.nullable(),
    reason: z.looseObject({}).describe("As recorded; `type` says which."),
    reasonWords: z.string(),
    probes: z.array(roundProbe),
    notAsked: z.array(ruledOut),
  })
  .meta({ id: "ProbeRound" });

const delegationChange = z
  .strictObject({
    subnetId: z.int(),
    changedAt: dateTime(),
    from: z.string().nullable(),
    to: z.string().nullable(),
    cause: changeCause,
    roundId: z.int().nullable(),
    reason: z.string(),
  })
  .meta({ id: "DelegationChange" });

const fetchLine = z
  .strictObject({
    url: z.string(),
    crawler: z.string(),
    fetchedAt: dateTime(),
    outcome: z.string(),
    blame: z.string().nullable(),
    status: z.int().nullable(),
    totalMs: z.number(),
    bodyBytes: z.int(),
    shippedBytes: z.int(),
    changed: z
      .boolean()
      .nullable()
      .describe("Whether it found other content than the fetch before it; null: nothing to compare with."),
  })
  .meta({ id: "FetchLine" });

const urlReport = z
  .strictObject({
    url: z.string(),
    state: z
      .enum([
        "in-progress",
        "due",
        "scheduled",
        "blocked-by-robots",
        "refused",
        "gone",
        "payment-required",
        "held",
      ])
      .describe(
        "in-progress: a crawler has it. due: it may be fetched now. scheduled: later. held: over its host's budget for the time being. payment-required: the site answers with 402, and it is asked again after a month.",
      ),
    depth: z.int(),
    redirects: z.int().describe("In a row that led to it."),
    backLinks: z.int(),
    discoveredAt: dateTime(),
    nextFetchAt: dateTime().nullable(),
    visits: z.int(),
    failures: z.int().describe("In a row."),
    lastFetchedAt: dateTime().nullable(),
    lastOutcome: z.string().nullable(),
    lastStatus: z.int().nullable(),
    lastReason: z.string().nullable(),
    worth: z
      .enum(["good", "near-duplicate", "not-found", "empty", "failed"])
      .nullable()
      .describe("What it counts for in its host's budget; null: nothing."),
    page: z
      .strictObject({
        title: z.string(),
        language: z.string().nullable(),
        words: z.int(),
        declaredLanguage: z.string().nullable().describe("BCP 47, as the page states it."),
        detectedLanguage: z.string().nullable().describe("ISO 639, by the text."),
        publishedAt: dateTime().nullable(),
        modifiedAt: dateTime().nullable(),
        structured: z
          .strictObject({ type: z.string(), name: z.string(), description: z.string() })
          .nullable(),
        duplicateOf: z.string().nullable().describe("A page that had nearly the same text before."),
      })
      .nullable(),
    stated: statedUsesSchema
      .nullable()
      .describe(
        "What the site states of the uses of its page in the index; null: nothing, or there is no page.",
      ),
    fetches: z.array(fetchLine).describe("The latest 50, newest first."),
    id: z
      .strictObject({ hostHash: z.string(), urlHash: z.string() })
      .describe("Its key: what the frontier and the web graph know it by; 64-bit numbers as text."),
    foundBy: z.enum(["seed", "redirect", "list", "link"]).describe("list: a sitemap or a feed."),
    validators: z
      .strictObject({
        etag: z.string().nullable(),
        lastModified: z.string().nullable(),
        digest: z.string().nullable().describe("SHA-256 of the body last read, in hex."),
      })
      .describe("What the next fetch asks with."),
    changes: z.strictObject({
      perDay: z.number().nullable().describe("Estimated content changes per day; null: not known."),
      comparedVisits: z.int(),
      contentChanges: z.int(),
      outLinks: z.int().nullable(),
      linkRatio: z
        .number()
        .nullable()
        .describe("Of its links the share that changed between its last two visits."),
    }),
  })
  .meta({ id: "UrlReport" });

const hostReport = z
  .strictObject({
    host: z.string(),
    state: z.enum(["unresolved", "resolved", "refused", "unresolvable"]),
    stateReason: z.string(),
    resolveAt: dateTime(),
    resolveFailures: z.int(),
    addresses: z.array(z.string()),
    urlCount: z.int(),
    urlStates: z.record(z.string(), z.int()),
    dueAt: dateTime().nullable(),
    notBefore: dateTime().nullable().describe("Politeness."),
    lease: z
      .strictObject({ crawler: z.string(), grantedAt: dateTime(), expiresAt: dateTime(), openUrls: z.int() })
      .nullable(),
    robots: z
      .strictObject({ state: z.enum(["rules", "none", "closed", "unreachable"]), at: dateTime() })
      .describe("Its robots.txt, as it was found last. closed and unreachable disallow everything.")
      .nullable(),
    pace: z
      .strictObject({
        crawlDelayMs: z.int(),
        backOffMs: z.int().nullable().describe("After 429 or 503."),
        backedOffAt: dateTime().nullable(),
        usualMs: z.int().nullable().describe("How long it usually takes to answer."),
        tolerated: z
          .strictObject({
            perHour: z.number().describe("Requests."),
            limitedBy: z
              .enum(["refused", "silent", "slow"])
              .describe(
                "429 and 503; answers that stayed away; answers that took several times longer than usual.",
              ),
            refusedPerHour: z
              .number()
              .describe("The rate at which it turned crawlers away last; 0: not remembered."),
            refusedAt: dateTime().nullable(),
            at: dateTime().describe("When this was found."),
          })
          .nullable()
          .describe("The rate that it was found to tolerate; null: nothing limits it but the above."),
      })
      .describe("Politeness, as the last crawler left it.")
      .nullable(),
    capDelayMs: z
      .int()
      .nullable()
      .describe("Least time between two requests by an operator's cap on its site; null: there is none."),
    connection: z
      .strictObject({ http: z.string(), tls: z.string().nullable() })
      .describe("How it was spoken to last: HTTP version, verified TLS version.")
      .nullable(),
    budget: z.strictObject({
      earnedUrls: z.int().describe("URLs of it that may be in the frontier, before the operator's limit."),
      heldUrls: z.int().describe("Found beyond the budget, and waiting for it to grow."),
      leftOutUrls: z
        .int()
        .describe("Times that a URL was named beyond what is held back: left out each time, and not kept."),
      pages: z.strictObject({
        good: z.int(),
        nearDuplicates: z.int(),
        notFound: z.int(),
        empty: z.int(),
        failed: z.int(),
        trappedLinks: z.int(),
        outsideLinks: z.int(),
      }),
    }),
    domain: z
      .strictObject({
        domain: z.string(),
        hosts: z.int().describe("That links brought in."),
        newToday: z.int(),
        linkedToday: z
          .int()
          .describe("What its pages' links brought today: hosts, each first one of a domain five times."),
        waiting: z
          .int()
          .describe("URLs that wait for a later day, on new hosts of it or linked from its pages."),
        leftOut: z.int().describe("URLs that came when no more could wait."),
      })
      .describe("Its registrable domain; null: links have brought in nothing of it, and its pages nothing.")
      .nullable(),
    stated: z
      .strictObject({
        pages: z.int().describe("Of its pages in the index those that were looked at."),
        more: z.boolean().describe("There are more, which were not looked at."),
        counts: z.array(statedCountSchema),
      })
      .describe("How many of its pages are stated to be for what."),
    payment: z
      .strictObject({
        inARow: z.int().describe("Answers with status 402 in a row, the last ones."),
        askedAt: dateTime().nullable(),
        price: z.string().nullable().describe("As the site names it; null: it names none."),
      })
      .nullable()
      .describe("It asks to be paid; null: it does not."),
    botGate: z
      .strictObject({
        provider: z.string().describe("Short name, such as cloudflare; unknown: told by its words or shape."),
        of: z.enum(["page", "robots"]).describe("What it answered for."),
        tries: z.int().describe("In a row, one after each rest."),
        since: dateTime(),
        lastAt: dateTime(),
      })
      .nullable()
      .describe("A bot gate answers in the host's place, so that it rests; null: it does not."),
    nextUrls: z.array(z.strictObject({ url: z.string(), nextFetchAt: dateTime() })),
    fetches: z.array(fetchLine),
  })
  .meta({ id: "HostReport" });

const waitingReport = z
  .strictObject({
    subnetId: z.int(),
    hosts: z.int(),
    more: z.boolean(),
    next: z.array(z.strictObject({ host: z.string(), dueAt: dateTime(), urls: z.int() })),
  })
  .meta({ id: "WaitingReport" });

const subnetLine = z
  .strictObject({
    subnetId: z.int(),
    range: z.string(),
    name: z.string(),
    country: z.string().nullable(),
    crawler: z.string().nullable(),
    rttMs: z.number().nullable(),
    inherited: z.boolean(),
  })
  .meta({ id: "SubnetLine" });

export const subnetList = z
  .strictObject({ subnets: z.array(subnetLine), more: z.boolean() })
  .meta({ id: "SubnetList" });

const organisationReport = z
  .strictObject({
    holderId: z.int(),
    name: z.string(),
    handle: z.string().nullable(),
    registry: z.string().nullable(),
    holderKey: z.string(),
    subnetCount: z.int(),
    byCrawler: z.array(
      z.strictObject({
        crawler: z.string().nullable().describe("Null: no delegation of their own."),
        subnets: z.int(),
      }),
    ),
    list: subnetList,
  })
  .meta({ id: "OrganisationReport" });

export const crawlerReport = z
  .strictObject({
    crawlerId: z.int(),
    name: z.string(),
    state: z.enum(["online", "offline", "draining"]),
    place: z.string().nullable(),
    country: z.string().nullable(),
    latitude: z.number().nullable(),
    longitude: z.number().nullable(),
    address: z.string().nullable(),
    pagesPerDay: z.int(),
    concurrentHosts: z.int(),
    probeMethods: z.array(z.string()),
    speaksIpv6: z
      .boolean()
      .nullable()
      .describe("Whether it contacts sites over IPv6, too; null: not known yet."),
    softwareVersion: z.string().nullable(),
    connectedAt: dateTime().nullable(),
    lastSeenAt: dateTime().nullable(),
    offlineReason: z.string().nullable(),
    holdingBack: z.array(z.string()).describe("What holds it back right now, in its own words."),
    revoked: z.boolean(),
  })
  .meta({ id: "CrawlerReport" });

const standing = z
  .strictObject({
    code: z.string(),
    stops: z.boolean().describe("True: no fetch takes place while this holds."),
    words: z.string(),
  })
  .meta({ id: "Standing" });

const nearMatch = z
  .strictObject({
    type: z.enum(["organisation", "crawler", "host"]),
    name: z.string(),
    handle: z.string().nullable(),
    similarity: z.number().describe("0 to 1."),
  })
  .meta({ id: "NearMatch" });

const neighbours = z
  .strictObject({
    before: z.array(subnetLine),
    after: z.array(subnetLine),
    moreBefore: z.boolean(),
    moreAfter: z.boolean(),
  })
  .meta({ id: "Neighbours", description: "Subnets next to one by address, the nearest first." });

const optOutReport = z
  .strictObject({
    target: z.string().describe("What opted out, by its scope."),
    kind: z.enum(["site", "network"]),
    scope: z.enum(optOutScopes),
    state: z.enum(["unconfirmed", "confirmed"]),
    since: dateTime(),
    lapsesAt: dateTime().nullable().describe("An unconfirmed one ends then."),
  })
  .meta({ id: "OptOutReport" });

const complaintLine = z
  .strictObject({ complaintId: z.int(), target: z.string(), at: dateTime(), open: z.boolean() })
  .meta({ id: "ComplaintLine" });

const orderReport = z
  .strictObject({
    strategy: z.enum(orderNames),
    words: z.string().describe("What it puts first."),
    list: z.enum(["new", "old"]).describe("new: it was never visited."),
    newShare: z
      .number()
      .nullable()
      .describe("The share of a lease that is for new URLs; null: the strategy takes both as they come."),
    score: z.number().describe("Higher goes first."),
    reason: z.string().describe("The score with how it came about."),
    place: z
      .int()
      .nullable()
      .describe(
        "In its list, among the due URLs of its host; null: it is not due, or further back than is looked at.",
      ),
    of: z.int().describe("URLs of its list that were looked at."),
    hostWorth: z
      .number()
      .nullable()
      .describe("What the best new URL of its host is worth; null: not known, or none is due."),
    worthShare: z
      .number()
      .describe(
        "How many of the hosts that a crawler is handed go by what they are worth; the others go by how long they have been due.",
      ),
  })
  .meta({ id: "OrderReport" });

const rollUp = z
  .strictObject({
    subnets: z.int().describe("In use: assigned to a crawler, or with hosts."),
    registered: z.int().nullable().describe("In all, in use or not; null: too many to be counted."),
    byCrawler: z
      .array(z.strictObject({ crawler: z.string(), subnets: z.int(), pages: z.number() }))
      .describe("Ten crawlers at most, those with the most subnets."),
    others: z
      .strictObject({ crawlers: z.int(), subnets: z.int(), pages: z.number() })
      .nullable()
      .describe("All crawlers that are not named, together."),
    unassigned: z.int().describe("Subnets with hosts that are not assigned directly."),
    hosts: z.int(),
    dueHosts: z.int().describe("Hosts with a page that is due."),
    pages: z.number(),
    bytes: z.number().describe("Of all fetches so far."),
    rtt: z
      .strictObject({
        pages: z.number().describe("Pages in subnets that were measured."),
        meanMs: z.number().nullable().describe("Null: fewer than 30 pages, too few to tell."),
        medianMs: z.number().nullable(),
      })
      .describe("From the subnets' crawlers, each subnet as often as it has pages."),
  })
  .meta({ id: "RollUp", description: "What lies in a space." });

const ageingReport = z
  .strictObject({
    kind: z
      .enum(["all", "country", "holder"])
      .describe("The most specific kind of network of which something was seen."),
    moves: z.int().describe("Seen of that kind."),
    months: z.number().describe("Observed, all its subnets together."),
    perMonth: z.number().describe("Expected moves a month, from all kinds that the subnet belongs to."),
  })
  .meta({ id: "AgeingReport" });

const whoAnswer = z
  .strictObject({
    question: z.string(),
    found: z.boolean(),
    takenFor: z.strictObject({
      type: z.enum(["url", "host", "address", "range", "organisation", "country", "crawler", "unknown"]),
      value: z.string(),
    }),
    addresses: z.array(z.string()),
    addressesFrom: z.enum(["question", "frontier", "dns"]).nullable(),
    chain: z.array(chainSubnet).describe("Most specific first."),
    neighbours: neighbours
      .nullable()
      .describe("Subnets beside the most specific one, below the same subnet; null where there is none."),
    published: z
      .array(publishedReport)
      .describe("Where networks publish that the address or the range lies, a line for each source."),
    effective: effectiveDelegation.nullable(),
    ageing: ageingReport
      .nullable()
      .describe(
        "How soon a decision like the one in force is out of date; null: not learned, or not decided by a round.",
      ),
    finer: finerReport
      .nullable()
      .describe("In force for this host or address alone, in place of its subnet's delegation."),
    parts: z
      .array(finerReport)
      .describe("Parts of the most specific subnet that are crawled by others than the rest of it."),
    round: probeRound.nullable(),
    history: z.array(delegationChange).describe("Newest first."),
    url: urlReport.nullable(),
    host: hostReport.nullable(),
    waiting: waitingReport.nullable(),
    inside: subnetList.nullable(),
    organisation: organisationReport.nullable(),
    rollUp: rollUp
      .nullable()
      .describe(
        "Of a range, an organisation or a country: what lies in its space; null: nothing was to be counted, or not in time.",
      ),
    crawler: crawlerReport.nullable(),
    optOut: optOutReport.nullable().describe("What of it has opted out; no crawler asks for anything of it."),
    complaints: z.array(complaintLine).describe("About it, the latest first."),
    standing: z.array(standing).describe("What stands in the way of the next fetch, or how it comes about."),
    nearMatches: z.array(nearMatch),
    at: dateTime(),
    order: orderReport
      .nullable()
      .describe("Of a URL in the frontier: its place among what is due of its host."),
  })
  .meta({ id: "WhoAnswer" });

export const whoApi = {
  who: {
    method: "get",
    path: "/api/who",
    needs: "read",
    summary: "Who crawls this, and why (not)?",
    parameters: {
      query: {
        q: z.string().min(1).max(2048).meta({
          description:
            "URL, host, IP address, range (CIDR, or first - last), organisation (handle or name), crawler, or country (DE, country:DE). At most 2048 characters.",
          example: "1.2.9.5",
        }),
      },
    },
    answers: {
      200: {
        description: "The answer",
        schema: whoAnswer,
        example: {
          question: "1.2.9.5",
          found: true,
          takenFor: { type: "address", value: "1.2.9.5" },
          addresses: ["1.2.9.5"],
          addressesFrom: "question",
          chain: [
            {
              subnetId: 5,
              range: "1.2.9.0 - 1.2.9.9",
              unary: false,
              name: "EXAMPLE-OLD",
              holder: { holderId: 1, name: "Example Networks", handle: "ORG-EX1-AP" },
              country: "GR",
              registry: "apnic",
              delegation: {
                crawler: { crawlerId: 2, name: "berlin", state: "offline" },
                measured: false,
                rttMs: null,
                runnerUp: null,
                runnerUpRttMs: null,
                cause: "operator",
                since: "2026-03-01T10:30:00.000Z",
                roundId: null,
              },
            },
            {
              subnetId: 2,
              range: "1.2.0.0/16",
              unary: false,
              name: "EXAMPLE-NET",
              holder: { holderId: 1, name: "Example Networks", handle: "ORG-EX1-AP" },
              country: "GR",
              registry: "apnic",
              delegation: {
                crawler: { crawlerId: 1, name: "athens", state: "online" },
                measured: true,
                rttMs: 12.5,
                runnerUp: { crawlerId: 2, name: "berlin", state: "offline" },
                runnerUpRttMs: 48.25,
                cause: "probe-round",
                since: "2026-03-01T11:10:01.000Z",
                roundId: 1,
              },
            },
            {
              subnetId: 1,
              range: "1.0.0.0/8",
              unary: false,
              name: "APNIC",
              holder: null,
              country: null,
              registry: "iana",
              delegation: null,
            },
          ],
          published: [
            {
              source: "geofeed https://example.net/geofeed.csv",
              place: "GR-I Athens",
              range: "1.2.8.0/22",
              within: "1.2.0.0/16",
              listDate: "2026-02-20",
            },
          ],
          neighbours: {
            before: [
              {
                subnetId: 3,
                range: "1.2.3.0/24",
                name: "EXAMPLE-WEB",
                country: "GR",
                crawler: "athens",
                rttMs: 12.5,
                inherited: true,
              },
            ],
            after: [],
            moreBefore: false,
            moreAfter: false,
          },
          effective: {
            crawler: { crawlerId: 2, name: "berlin", state: "offline" },
            measured: false,
            rttMs: null,
            runnerUp: null,
            runnerUpRttMs: null,
            cause: "operator",
            since: "2026-03-01T10:30:00.000Z",
            roundId: null,
            subnetId: 5,
            range: "1.2.9.0 - 1.2.9.9",
            inherited: false,
            finer: null,
          },
          ageing: null,
          finer: null,
          parts: [],
          round: null,
          history: [],
          url: null,
          host: null,
          waiting: {
            subnetId: 5,
            hosts: 1,
            more: false,
            next: [{ host: "old.example.org", dueAt: "2026-03-01T11:59:00.000Z", urls: 1 }],
          },
          inside: null,
          organisation: null,
          rollUp: null,
          crawler: null,
          optOut: null,
          complaints: [],
          standing: [
            {
              code: "crawler-offline",
              stops: true,
              words: "berlin is offline: it was stopped by its host (last seen 266 days ago).",
            },
          ],
          nearMatches: [],
          at: "2026-03-01T12:00:00.000Z",
          order: null,
        },
      },
      400: errorAnswer("Ask with ?q="),
      404: {
        description: "Nothing is known of it; `nearMatches` may hold names like it",
        schema: whoAnswer,
        example: {
          question: "Exampel Netwerks",
          found: false,
          takenFor: { type: "unknown", value: "Exampel Netwerks" },
          addresses: [],
          addressesFrom: null,
          chain: [],
          published: [],
          neighbours: null,
          effective: null,
          ageing: null,
          finer: null,
          parts: [],
          round: null,
          history: [],
          url: null,
          host: null,
          waiting: null,
          inside: null,
          organisation: null,
          rollUp: null,
          crawler: null,
          optOut: null,
          complaints: [],
          standing: [],
          nearMatches: [
            { type: "organisation", name: "Example Networks", handle: "ORG-EX1-AP", similarity: 0.48 },
          ],
          at: "2026-03-01T12:00:00.000Z",
          order: null,
        },
      },
    },
  },
} satisfies ApiOperations;
