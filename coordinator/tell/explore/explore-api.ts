/** The schemas of the explorer's questions and answers. */
import { z } from "zod";
import { registries } from "../../place/subnets/subnet.ts";
import { orNull, record, type ToldOf } from "../../web/api-operation.ts";

export const exploreViews = ["map", "tree", "list", "countries"] as const;
const listOrders = ["address", "load", "rtt"] as const;
const subnetStates = ["delegated", "inherited", "waiting", "none", "anycast", "finer"] as const;

export const exploredSubnet = record("ExploredSubnet", {
  range: z.string(),
  name: z.string().describe("The registry's own name for it; may be empty."),
  holder: z.strictObject({ holderId: z.int(), name: z.string(), handle: z.string().nullable() }).nullable(),
  country: z.string().nullable(),
  registry: z.string(),
  state: z
    .enum(["delegated", "inherited", "none"])
    .describe("delegated: by a decision of its own. inherited: by that of decidedFor."),
  crawler: z.string().nullable(),
  decidedFor: z.string().nullable().describe("The subnet whose delegation holds here."),
  rttMs: z.number().nullable().describe("Null where nobody measured."),
  delegatedAt: z.string().meta({ format: "date-time" }).nullable(),
  pagesPerDay: z.number().describe("Of its own hosts; those of subnets within it are theirs."),
  dueHosts: z.int().describe("Hosts with pages that are due."),
  waiting: z.boolean().describe("It has due hosts and no delegation of its own."),
  anycast: z.boolean(),
  finer: z.boolean().describe("Hosts or parts of it are delegated apart."),
  subnetsWithin: z.int().describe("Registered subnets that start within it."),
});

const sharePart = record("ExploreShare", {
  label: z.string(),
  kind: z
    .enum(["crawler", "others", "none"])
    .describe("others: crawlers with fewer subnets, together. none: nobody crawls them."),
  colour: z.string(),
  subnets: z.int(),
});

const exploredBranch = exploredSubnet
  .extend({
    crawledBy: z.array(sharePart).describe("Who crawls it and the subnets within it; each subnet once."),
  })
  .meta({ id: "ExploredBranch" });

const asked = {
  at: z.string().describe("The block or range that is shown."),
  family: z.literal([4, 6]),
};

export const exploreMap = record("ExploreMap", {
  ...asked,
  view: z.enum(["map"]),
  above: z.array(z.string()).describe("The larger blocks around it, from the largest down."),
  totals: z.strictObject({
    subnets: z.int(),
    crawled: z.int().describe("By a decision of their own or by that of a less specific one."),
    pagesPerDay: z.int(),
    dueHosts: z.int(),
  }),
  legend: z
    .array(
      sharePart.extend({
        path: z.string().describe("The cells where it has most subnets: a path of SVG, 64 units a side."),
      }),
    )
    .describe("Every subnet in view is counted once."),
  blocks: z
    .array(
      z.strictObject({
        range: z.string(),
        x: z.int().describe("Its position in the picture, in cells."),
        y: z.int(),
        subnets: z.int(),
        crawled: z.int(),
        crawledBy: z.array(sharePart),
      }),
    )
    .describe("The sixteen blocks of the view, by address."),
});

export const exploreTree = record("ExploreTree", {
  ...asked,
  view: z.enum(["tree"]),
  sort: z.enum(listOrders),
  above: z.array(exploredBranch).describe("From the largest down."),
  subnet: exploredBranch.nullable().describe("Null: the whole family."),
  children: z.array(exploredBranch),
  childCount: z.int(),
  next: z.string().nullable().describe("Where the next page goes on: its parameter after."),
});

export const exploreList = record("ExploreList", {
  ...asked,
  view: z.enum(["list"]),
  sort: z.enum(listOrders),
  subnets: z.array(exploredSubnet),
  count: z.int(),
  isWholeCount: z.boolean().describe("False: there are more than count, or some came on pages before."),
  next: z.string().nullable(),
});

const countryLine = record("ExploredCountry", {
  country: z.string().nullable().describe("ISO 3166-1; null: registered without one."),
  name: z.string(),
  subnets: z.int(),
  crawled: z.int(),
  crawledBy: z.array(sharePart),
  measured: z.int().describe("Assigned directly, with a round-trip time."),
  medianRttMs: orNull(z.number(), "Null below 30 measurements; two significant digits."),
  pagesPerDay: z.int(),
  dueHosts: z.int(),
});

export const exploreCountries = record("ExploreCountries", {
  view: z.enum(["countries"]),
  countries: z.array(countryLine).describe("Most subnets first; as it was within the last minute."),
  totals: z.strictObject({ countries: z.int(), subnets: z.int(), crawled: z.int() }),
});

export type ExploredSubnet = ToldOf<typeof exploredSubnet>;
export type ExploredBranch = ToldOf<typeof exploredBranch>;
export type SharePart = ToldOf<typeof sharePart>;
export type MapAnswer = ToldOf<typeof exploreMap>;
export type TreeAnswer = ToldOf<typeof exploreTree>;
export type ListAnswer = ToldOf<typeof exploreList>;
export type CountriesAnswer = ToldOf<typeof exploreCountries>;
export type CountryLine = ToldOf<typeof countryLine>;
export type ExploreAnswer = MapAnswer | TreeAnswer | ListAnswer | CountriesAnswer;

const mostLimit = 200;

/** The filters of subnets. */
const filterParameters = {
  crawler: z
    .string()
    .max(200)
    .optional()
    .meta({ title: "Crawler", description: "Only what this crawler has, by its name.", example: "athens" }),
  state: z
    .enum(subnetStates)
    .optional()
    .meta({
      title: "State",
      description:
        "delegated: by a decision of its own. inherited: by that of a less specific subnet. " +
        "waiting: due hosts and no decision of its own. none: nobody crawls it. " +
        "anycast: it answers from many places. finer: hosts or parts are delegated apart.",
      example: "waiting",
    }),
  registry: z
    .enum(registries)
    .optional()
    .meta({ title: "Registry", description: "Only what is registered there.", example: "ripencc" }),
  country: z
    .string()
    .max(2, "it is not a country code of two letters")
    .regex(/^[A-Za-z]{2}$/, "it is not a country code of two letters")
    .toUpperCase()
    .optional()
    .meta({ title: "Country", description: "ISO 3166-1 code of two letters.", example: "CY" }),
  holder: z
    .string()
    .max(200)
    .optional()
    .meta({ title: "Holder", description: "A handle, or the name in full.", example: "ORG-EX1-RIPE" }),
  minRttMs: z.coerce.number().min(0).optional().meta({
    title: "RTT from (ms)",
    description: "Only subnets with at least this round-trip time, in ms.",
    example: 100,
  }),
  minLoad: z.coerce.number().min(0).optional().meta({
    title: "Load from (pages per day)",
    description: "Only subnets with at least this many pages per day.",
    example: 1,
  }),
};

export type SubnetFilter = z.output<z.ZodObject<typeof filterParameters>>;

export const filterNames = Object.keys(filterParameters);

export const exploreInput = z.object({
  view: z
    .enum(exploreViews)
    .optional()
    .meta({ description: "Left out: a list when there is a filter, else a map.", example: "list" }),
  at: z.string().max(100).default("ipv4").meta({
    title: "Block or address",
    description: "An address, a block, a range, ipv4 or ipv6.",
    example: "80.0.0.0/4",
  }),
  sort: z.enum(listOrders).default("address").meta({
    description: "Of a list, and of a tree but for rtt. load, rtt: only subnets that have one.",
    example: "address",
  }),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(mostLimit)
    .default(50)
    .meta({ description: "Subnets at most.", example: 50 }),
  after: z
    .string()
    .max(100)
    .optional()
    .meta({ description: "Go on behind this range: next of the page before.", example: "1.2.3.0/24" }),
  ...filterParameters,
});
