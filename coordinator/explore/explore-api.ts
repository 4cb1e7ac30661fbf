/** The API of the map of the address space: what it takes and answers. */
import { z } from "zod";
import { registries } from "../subnets/subnet.ts";
import { type ApiOperations, dateTime, errorAnswer } from "../web/api-operation.ts";
import { exploreViews, mapLayouts } from "./answer.ts";
import { colourings } from "./colours.ts";
import { subnetStates } from "./filter.ts";
import { listOrders } from "./list.ts";
import { measures } from "./occupied.ts";

const exploredSubnet = z
  .strictObject({
    range: z.string(),
    name: z.string(),
    holder: z.strictObject({ holderId: z.int(), name: z.string(), handle: z.string().nullable() }).nullable(),
    country: z.string().nullable(),
    registry: z.string(),
    state: z.enum(["delegated", "inherited", "none"]),
    crawler: z.string().nullable(),
    decidedFor: z.string().nullable().describe("The subnet whose delegation holds here."),
    rttMs: z.number().nullable(),
    delegatedAt: dateTime().nullable(),
    pagesPerDay: z.number(),
    dueHosts: z.int(),
    waiting: z.boolean(),
    anycast: z.boolean(),
    finer: z.boolean(),
    subnetsWithin: z.int(),
  })
  .meta({ id: "ExploredSubnet" });

const sharePart = z
  .strictObject({
    label: z.string(),
    kind: z.enum(["value", "others", "none"]),
    colour: z.string(),
    patterned: z.boolean(),
    subnets: z.int(),
  })
  .meta({ id: "ExploreShare" });

const exploredBranch = exploredSubnet
  .extend({
    crawledBy: z.array(sharePart).describe("Who crawls it and the subnets within it; each subnet once."),
  })
  .meta({ id: "ExploredBranch" });

const mapShown = {
  at: z.string(),
  family: z.literal([4, 6]),
  filter: z.record(z.string(), z.union([z.string(), z.number()]).nullable()),
  view: z.enum(["map"]),
  colour: z.string(),
  totals: z
    .strictObject({
      subnets: z.int(),
      crawled: z.int(),
      pagesPerDay: z.number(),
      dueHosts: z.int(),
    })
    .describe("Of the subnets in view that the filter lets through."),
  legend: z
    .array(sharePart.extend({ share: z.number() }))
    .describe("What the view is made of: every subnet in view is counted once."),
  picked: exploredBranch.nullable().describe("The subnet at pick."),
};

const exploreOccupied = z
  .strictObject({
    ...mapShown,
    layout: z.enum(["occupied"]),
    measure: z.enum(measures),
    width: z.number(),
    height: z.number(),
    groups: z
      .array(
        z.strictObject({
          x: z.number(),
          y: z.number(),
          width: z.number(),
          height: z.number(),
          range: z.string(),
          isSubnet: z.boolean(),
          subnets: z.int(),
          parts: z.array(sharePart),
        }),
      )
      .describe("The rectangles as drawn, in the order of addresses: one subnet each, or a block."),
  })
  .meta({ id: "ExploreOccupiedMap" });

const exploreMap = z
  .strictObject({
    ...mapShown,
    layout: z.enum(["whole"]),
    zoom: z.int(),
    tileIndex: z.int().describe("Along the Hilbert curve."),
    corner: z.strictObject({ x: z.int(), y: z.int() }),
    addressesPerCell: z.string().describe("A whole number; for IPv6 more than a JSON number holds exactly."),
    addresses: z
      .strictObject({ registered: z.number(), chosen: z.number(), crawled: z.number() })
      .describe("Shares of the tile's addresses."),
    blocks: z
      .array(
        z.strictObject({
          range: z.string(),
          subnets: z.int(),
          registeredShare: z.number(),
          delegatedShare: z.number(),
          crawler: z.string().nullable(),
          registry: z.string().nullable(),
          meanRttMs: z.number().nullable(),
          meanDelegatedAt: z.string().nullable(),
          pagesPerDay: z.number(),
        }),
      )
      .describe("The sixteen blocks of the tile, by address."),
  })
  .meta({ id: "ExploreWholeMap" });

const exploreTree = z
  .strictObject({
    at: z.string(),
    family: z.literal([4, 6]),
    filter: z.record(z.string(), z.union([z.string(), z.number()]).nullable()),
    view: z.enum(["tree"]),
    sort: z.string(),
    above: z.array(exploredBranch),
    subnet: exploredBranch.nullable(),
    children: z.array(exploredBranch),
    childCount: z.int().nullable().describe("Null: more than were counted."),
    next: z.string().nullable().describe("Where the next page goes on: its parameter after."),
  })
  .meta({ id: "ExploreTree" });

const exploreList = z
  .strictObject({
    at: z.string(),
    family: z.literal([4, 6]),
    filter: z.record(z.string(), z.union([z.string(), z.number()]).nullable()),
    view: z.enum(["list"]),
    sort: z.string(),
    subnets: z.array(exploredSubnet),
    count: z.int(),
    isWholeCount: z.boolean().describe("False: there are more than count, or some came on pages before."),
    next: z.string().nullable(),
  })
  .meta({ id: "ExploreList" });

const explorePoint = z
  .strictObject({
    address: z.string().describe("The first of the cell."),
    tile: z.string(),
    subnet: exploredSubnet
      .nullable()
      .describe(
        "What the cell is drawn by: of the subnets that give it its colour, the one with most of it.",
      ),
    subnets: z.int().describe("With addresses in the cell."),
  })
  .meta({ id: "ExplorePoint" });

const exploreFile = z
  .strictObject({ subnets: z.array(exploredSubnet), isComplete: z.boolean() })
  .meta({ id: "ExploreFile" });

const countryLine = z
  .strictObject({
    country: z.string().nullable().describe("ISO 3166-1; null: registered without one."),
    name: z.string(),
    subnets: z.int(),
    crawled: z.int(),
    crawledBy: z.array(sharePart),
    measured: z.int().describe("Assigned directly, with a round-trip time."),
    medianRttMs: z
      .number()
      .nullable()
      .describe("Of those; null under 30 of them. Two digits are significant."),
    state: z.enum(["measured", "few", "nobody"]),
    pagesPerDay: z.number(),
    dueHosts: z.int(),
  })
  .meta({ id: "ExploredCountry" });

const exploreCountries = z
  .strictObject({
    countries: z.array(countryLine).describe("Most subnets first."),
    crawlers: z
      .array(
        z.strictObject({
          name: z.string(),
          state: z.enum(["online", "offline", "draining"]),
          place: z.string().nullable(),
          country: z.string().nullable(),
          latitude: z.number().nullable(),
          longitude: z.number().nullable(),
          placedBy: z
            .enum(["coordinates", "country", "nothing"])
            .describe("country: drawn in its middle. nothing: not drawn."),
          subnets: z.int(),
        }),
      )
      .describe("The 300 with most subnets."),
    crawlerCount: z.int(),
    totals: z.strictObject({ countries: z.int(), subnets: z.int(), crawled: z.int() }),
    picked: countryLine.nullable(),
  })
  .meta({ id: "ExploreCountries" });

/** Which subnets count. */
const filterParameters = {
  crawler: z
    .string()
    .max(200)
    .optional()
    .meta({ description: "Only what this crawler has, by its name.", example: "athens" }),
  state: z.enum(subnetStates).optional().meta({
    description:
      "delegated: by a decision of its own. inherited: by that of a less specific subnet. waiting: due hosts and no decision of its own. none: nobody crawls it. anycast: it answers from many places. finer: hosts or parts are delegated apart.",
    example: "waiting",
  }),
  registry: z
    .enum(registries)
    .optional()
    .meta({ description: "Only what is registered there.", example: "ripencc" }),
  country: z
    .string()
    .max(2)
    .optional()
    .meta({ description: "ISO 3166-1 code of two letters.", example: "CY" }),
  holder: z
    .string()
    .max(200)
    .optional()
    .meta({ description: "A handle, or the name in full.", example: "ORG-EX1-RIPE" }),
  minRttMs: z
    .number()
    .min(0)
    .max(100000)
    .optional()
    .meta({ description: "Only subnets with at least this round-trip time, in ms.", example: 100 }),
  maxRttMs: z
    .number()
    .min(0)
    .max(100000)
    .optional()
    .meta({ description: "Only subnets with at most this round-trip time, in ms.", example: 300 }),
  minLoad: z
    .number()
    .min(0)
    .optional()
    .meta({ description: "Only subnets with at least this many pages per day.", example: 1 }),
  olderThanDays: z
    .number()
    .min(0)
    .max(36500)
    .optional()
    .meta({ description: "Only what was decided longer ago.", example: 30 }),
  minPrefix: z
    .int()
    .min(0)
    .max(128)
    .optional()
    .meta({ description: "Only blocks of this prefix length or longer.", example: 16 }),
  maxPrefix: z
    .int()
    .min(0)
    .max(128)
    .optional()
    .meta({ description: "Only blocks of this prefix length or shorter.", example: 24 }),
};

const exampleCountry = {
  country: "GR",
  name: "Greece",
  subnets: 1440,
  crawled: 412,
  crawledBy: [
    { label: "athens", kind: "value" as const, colour: "#0072b2", patterned: false, subnets: 412 },
    {
      label: "registered, not crawled",
      kind: "none" as const,
      colour: "#869694",
      patterned: false,
      subnets: 1028,
    },
  ],
  measured: 96,
  medianRttMs: 12,
  state: "measured" as const,
  pagesPerDay: 5400,
  dueHosts: 3,
};

export const exploreApi = {
  explore: {
    method: "get",
    path: "/api/explore",
    needs: "read",
    summary: "Who crawls what: a map's figures, a level of the tree, or a list",
    description:
      "Needs the scope read where the pages are not open to everybody. Answered from the coordinator's memory.",
    parameters: {
      query: {
        view: z
          .enum(exploreViews)
          .optional()
          .meta({ description: "Left out: a list when there is a filter, else a map.", example: "list" }),
        at: z
          .string()
          .max(100)
          .default("ipv4")
          .meta({ description: "An address, a block, a range, ipv4 or ipv6.", example: "80.0.0.0/4" }),
        layout: z.enum(mapLayouts).default("occupied").meta({
          description: "Of a map. occupied: what is registered, by itself. whole: the whole address space.",
          example: "whole",
        }),
        measure: z.enum(measures).default("subnets").meta({
          description: "What areas of the occupied map stand for; addresses by their logarithm.",
          example: "pages",
        }),
        pick: z
          .string()
          .max(100)
          .optional()
          .meta({ description: "An address or a range: its subnet is told of, too.", example: "1.2.3.0/24" }),
        colour: z
          .enum(colourings)
          .default("crawler")
          .meta({ description: "What is shown by colour.", example: "rtt" }),
        sort: z
          .enum(listOrders)
          .default("address")
          .meta({ description: "Of a list; a tree takes the first three.", example: "address" }),
        limit: z.int().min(1).max(200).default(50).meta({ description: "Subnets at most.", example: 50 }),
        after: z
          .string()
          .max(100)
          .optional()
          .meta({ description: "Go on behind this range: next of the page before.", example: "1.2.3.0/24" }),
        ...filterParameters,
      },
    },
    answers: {
      200: {
        description: "The answer, by view",
        schema: z.union([exploreOccupied, exploreMap, exploreTree, exploreList]),
        examples: {
          list: {
            summary: "What waits for a decision",
            value: {
              at: "0.0.0.0/0",
              family: 4,
              filter: {
                crawler: null,
                registry: null,
                country: null,
                holder: null,
                state: "waiting",
                minRttMs: null,
                maxRttMs: null,
                olderThanDays: null,
                minPrefix: null,
                maxPrefix: null,
                minLoad: null,
              },
              view: "list",
              sort: "address",
              subnets: [
                {
                  range: "1.2.3.0/24",
                  name: "EXAMPLE-WEB",
                  holder: { holderId: 2, name: "Example Web Ltd", handle: "ORG-EX2-AP" },
                  country: "GR",
                  registry: "apnic",
                  state: "inherited",
                  crawler: "athens",
                  decidedFor: "1.2.0.0/16",
                  rttMs: 12.5,
                  delegatedAt: "2026-03-01T11:10:01.000Z",
                  pagesPerDay: 1,
                  dueHosts: 1,
                  waiting: true,
                  anycast: false,
                  finer: false,
                  subnetsWithin: 1,
                },
              ],
              count: 1,
              isWholeCount: true,
              next: null,
            },
          },
        },
      },
      400: errorAnswer("What is asked cannot be answered"),
      503: errorAnswer("The explorer still reads what is known"),
    },
  },
  exploreCountries: {
    method: "get",
    path: "/api/explore/map",
    needs: "read",
    summary: "Who crawls which country, and from how far",
    description:
      "By the country that a subnet is registered in; as it was within the last minute. Needs the scope read.",
    parameters: {
      query: {
        country: z
          .string()
          .max(2)
          .optional()
          .meta({ description: "The country that picked is to tell of.", example: "CY" }),
      },
    },
    answers: {
      200: {
        description: "Countries and crawlers",
        schema: exploreCountries,
        example: {
          countries: [exampleCountry],
          crawlers: [
            {
              name: "athens",
              state: "online",
              place: "Athens",
              country: "GR",
              latitude: 37.98,
              longitude: 23.73,
              placedBy: "coordinates",
              subnets: 412,
            },
          ],
          crawlerCount: 1,
          totals: { countries: 1, subnets: 1440, crawled: 412 },
          picked: null,
        },
      },
      400: errorAnswer("What is asked cannot be answered"),
      503: errorAnswer("The explorer still reads what is known"),
    },
  },
  explorePoint: {
    method: "get",
    path: "/api/explore/point",
    needs: "read",
    summary: "What is drawn at a point of the map",
    description:
      "Of the map of the whole address space, which is drawn along a Hilbert curve; order is the number of bits of x (to the right) and of y (downwards). Colour and filters are those of the tile. Needs the scope read.",
    parameters: {
      query: {
        ...filterParameters,
        colour: z
          .enum(colourings)
          .default("crawler")
          .meta({ description: "What is shown by colour.", example: "rtt" }),
        family: z.literal([4, 6]).default(4).meta({ description: "4 or 6.", example: 4 }),
        order: z.int().min(8).max(26).meta({ description: "8 to 16 for IPv4, to 26 for IPv6.", example: 16 }),
        x: z.int().min(0).meta({ description: "Below 2 to the order.", example: 300 }),
        y: z.int().min(0).meta({ description: "Below 2 to the order.", example: 4660 }),
      },
    },
    answers: {
      200: {
        description: "The address, its tile and the subnet",
        schema: explorePoint,
        example: {
          address: "1.2.3.0",
          tile: "1.2.0.0/16",
          subnets: 1,
          subnet: {
            range: "1.2.3.0/24",
            name: "EXAMPLE-WEB",
            holder: { holderId: 2, name: "Example Web Ltd", handle: "ORG-EX2-AP" },
            country: "GR",
            registry: "apnic",
            state: "inherited",
            crawler: "athens",
            decidedFor: "1.2.0.0/16",
            rttMs: 12.5,
            delegatedAt: "2026-03-01T11:10:01.000Z",
            pagesPerDay: 1,
            dueHosts: 1,
            waiting: true,
            anycast: false,
            finer: false,
            subnetsWithin: 1,
          },
        },
      },
      400: errorAnswer("What is asked cannot be answered"),
    },
  },
  exploreSubnets: {
    method: "get",
    path: "/api/explore/subnets",
    needs: "read",
    summary: "A whole list, sent while it is made",
    description:
      "At most 1,000,000 subnets; isComplete says whether these are all. The same as CSV is at /explore/subnets.csv. Two are sent at once at most. Needs the scope read.",
    parameters: {
      query: {
        at: z
          .string()
          .max(100)
          .default("ipv4")
          .meta({ description: "An address, a block, a range, ipv4 or ipv6.", example: "80.0.0.0/4" }),
        ...filterParameters,
      },
    },
    answers: {
      200: {
        description: "The subnets by address",
        schema: exploreFile,
        example: {
          subnets: [
            {
              range: "1.2.3.0/24",
              name: "EXAMPLE-WEB",
              holder: { holderId: 2, name: "Example Web Ltd", handle: "ORG-EX2-AP" },
              country: "GR",
              registry: "apnic",
              state: "inherited",
              crawler: "athens",
              decidedFor: "1.2.0.0/16",
              rttMs: 12.5,
              delegatedAt: "2026-03-01T11:10:01.000Z",
              pagesPerDay: 1,
              dueHosts: 1,
              waiting: true,
              anycast: false,
              finer: false,
              subnetsWithin: 1,
            },
          ],
          isComplete: true,
        },
      },
      400: errorAnswer("What is asked cannot be answered"),
    },
  },
  exploreTile: {
    method: "get",
    path: "/explore/tile.png",
    needs: "read",
    summary: "A tile of the map as a picture of 256 by 256 cells",
    description:
      "Clear where nothing is registered, faint where little of a cell is meant. Needs the scope read.",
    parameters: {
      query: {
        family: z.literal([4, 6]).default(4).meta({ description: "4 or 6.", example: 4 }),
        zoom: z.int().min(0).max(18).meta({
          description:
            "0 to 8 for IPv4, to 18 for IPv6; each zoom has four tiles for one of the zoom before.",
          example: 0,
        }),
        x: z.int().min(0).meta({ description: "Tiles to the right.", example: 0 }),
        y: z.int().min(0).meta({ description: "Tiles downwards.", example: 0 }),
        colour: z
          .enum(colourings)
          .default("crawler")
          .meta({ description: "What cells are coloured by.", example: "rtt" }),
        ...filterParameters,
      },
    },
    answers: {
      200: {
        description: "An indexed PNG",
        schema: z.string().meta({ format: "binary" }),
        type: "image/png",
      },
      400: errorAnswer("What is asked cannot be answered"),
    },
  },
} satisfies ApiOperations;
