/** RDAP against a real server on loopback: which server is asked what, and what its answers become. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { formatRange, parseRange } from "#core/ip/range";
import { readBootstrap, serviceFor } from "#rir-import/formats/rdap-bootstrap";
import { manualClock } from "../download/fetching.ts";
import { always, certificateFile, type RegistryServer, registryServer } from "../download/registry-server.ts";
import { ask, bootstrapFor, bootstrapText, entity, ipNetwork, rdap } from "./rdap-server.ts";

let server: RegistryServer;
beforeEach(async () => {
  server = await registryServer();
});
afterEach(async () => await server.close());

const askHere = (text: string) => ask(text, { bootstrap: bootstrapFor(server.origin) });

describe("IANA's bootstrap file (RFC 9224)", () => {
  const bootstrap = readBootstrap(
    "ipv4.json",
    bootstrapText([
      [
        ["45.0.0.0/8", "46.0.0.0/8"],
        ["http://old.example.net/", "https://new.example.net"],
      ],
      [["45.10.0.0/16"], ["https://special.example.net/rdap/"]],
      [["not a block"], ["https://x.example.net/"]],
      [["47.0.0.0/8"], ["ftp://x.example.net/"]],
    ]),
  );
  const serversFor = (text: string) => serviceFor(bootstrap, parseRange(text)!)?.servers ?? null;

  it("names the server of the most specific block that holds the whole range (section 5.1)", () => {
    expect(serversFor("45.10.1.0/24")).toEqual(["https://special.example.net/rdap/"]);
    expect(serversFor("45.8.0.0/14")).toEqual(["https://new.example.net/", "http://old.example.net/"]);
    expect(serversFor("44.0.0.0/7")).toBeNull();
    expect(serversFor("47.1.1.1")).toBeNull();
  });

  it("is refused when it is not one", () => {
    expect(() => readBootstrap("f", "<html>")).toThrow("f:1: a web page, not an RDAP bootstrap file");
    expect(() => readBootstrap("f", "{")).toThrow("f: not JSON");
    expect(() => readBootstrap("f", '{"version":"1.0"}')).toThrow("not an RDAP bootstrap file: publication");
    expect(() => readBootstrap("f", bootstrapText([]))).toThrow("names no server");
  });
});

describe("the query (RFC 9082 section 3.1.1)", () => {
  it.each([
    ["45.10.0.7", "/ip/45.10.0.7"],
    ["45.10.0.0/22", "/ip/45.10.0.0/22"],
    ["2a00:1::/32", "/ip/2a00:1::/32"],
  ])("for %s is %s", async (text, path) => {
    await askHere(text);

    expect(server.requests[0]).toMatchObject({
      path,
      headers: { accept: expect.stringContaining("application/rdap+json"), "user-agent": "Nearcrawl/test" },
    });
  });

  it("for a range that is no block is its first address, then the smallest block around it", async () => {
    server.paths.set("/ip/45.10.0.0", rdap(ipNetwork({ endAddress: "45.10.0.255" })));
    server.paths.set("/ip/45.10.0.0/22", rdap(ipNetwork()));

    const answer = await askHere("45.10.0.0 - 45.10.2.9");

    expect(server.requests.map(({ path }) => path)).toEqual(["/ip/45.10.0.0", "/ip/45.10.0.0/22"]);
    expect(answer).toMatchObject({ type: "found", network: { range: parseRange("45.10.0.0/22") } });
  });

  it("goes to the next server when the first cannot be reached, and to nobody where nobody is named", async () => {
    const gone = await registryServer();
    await gone.close();
    server.paths.set("/ip/45.10.0.7", rdap(ipNetwork()));
    const text = bootstrapText([[["45.0.0.0/8"], [gone.origin, server.origin]]]);
    const bootstrap = { ...bootstrapFor(server.origin), ipv4: readBootstrap("f", text) };

    expect(await ask("45.10.0.7", { bootstrap })).toMatchObject({ type: "found" });
    expect(await ask("99.1.1.1", { bootstrap })).toEqual({ type: "no server" });
  });

  it("follows a few redirects, as ARIN and LACNIC send them, and never from https to http", async () => {
    server.paths.set("/ip/45.10.0.7", always(302, "", { location: "/elsewhere" }));
    server.paths.set("/elsewhere", rdap(ipNetwork()));
    server.paths.set("/ip/45.10.0.8", always(302, "", { location: "/ip/45.10.0.8" }));

    expect(await askHere("45.10.0.7")).toMatchObject({ type: "found", url: `${server.origin}/elsewhere` });
    expect(await askHere("45.10.0.8")).toMatchObject({ type: "failed", reason: "more than 3 redirects" });

    const down = { "/ip/45.10.0.7": always(302, "", { location: `${server.origin}/elsewhere` }) };
    const secure = await registryServer(down, { secure: true });

    const certificates = [readFileSync(certificateFile, "utf8")];
    const http = { userAgent: "Nearcrawl/test", proxy: null, certificates, redirects: 3 };
    const answer = await ask("45.10.0.7", { bootstrap: bootstrapFor(secure.origin), http });
    await secure.close();
    expect(answer).toMatchObject({ type: "failed", reason: expect.stringContaining("from https to http") });
  });
});

describe("an ip network (RFC 9083 section 5.4)", () => {
  const answerTo = async (network: unknown) => {
    server.paths.set("/ip/45.10.0.7", rdap(network));
    return await askHere("45.10.0.7");
  };
  const holderIn = async (entities: unknown) => {
    const answer = await answerTo(ipNetwork({ entities }));
    return answer.type === "found" ? answer.network.holder : answer;
  };

  it("becomes a network with its holder, and the record that an import would make", async () => {
    const answer = await answerTo(ipNetwork());

    expect(answer).toMatchObject({
      type: "found",
      registry: "ripencc",
      network: {
        range: parseRange("45.10.0.0/22"),
        handle: "45.10.0.0 - 45.10.3.255",
        parentHandle: "45.0.0.0 - 45.255.255.255",
        name: "EXEMPLARY-NET",
        type: "ALLOCATED PA",
        country: "NL",
        status: ["active"],
        holder: { handle: "ORG-EX1-RIPE", name: "Exemplary Networks B.V." },
        lastChanged: "2025-06-07T08:09:10Z",
        port43: "whois.ripe.net",
      },
      record: {
        type: "network",
        line: 1,
        source: "whois",
        range: parseRange("45.10.0.0/22"),
        registry: "ripencc",
        name: "EXEMPLARY-NET",
        country: "NL",
        holder: {
          type: "handle",
          handle: "ORG-EX1-RIPE",
          registry: "ripencc",
          name: "Exemplary Networks B.V.",
        },
      },
    });
  });

  it("has an IPv6 range as well", async () => {
    server.paths.set(
      "/ip/2a00:1::1",
      rdap(ipNetwork({ startAddress: "2a00:1::", endAddress: "2a00:1:ffff:ffff:ffff:ffff:ffff:ffff" })),
    );

    const answer = await askHere("2a00:1::1");

    expect(answer.type === "found" && formatRange(answer.network.range)).toBe("2a00:1::/32");
  });

  it("is held by a registrant, never by a maintainer nor by a contact", async () => {
    expect(await holderIn([entity("EX-MNT", ["registrant"], [["fn", "EX-MNT"]])])).toBeNull();
    expect(
      await holderIn([
        entity(
          "AB1-RIPE",
          ["technical"],
          [
            ["fn", "A. B."],
            ["kind", "org"],
          ],
        ),
      ]),
    ).toBeNull();
    expect(await holderIn([entity("EXN-3", ["registrant", "abuse"], [["fn", "Example Net"]])])).toEqual({
      handle: "EXN-3",
      name: "Example Net",
    });
  });

  it("is held by the organisation, where a person is a registrant too", async () => {
    const person = entity(
      "TC1-AP",
      ["registrant"],
      [
        ["fn", "Tess Case"],
        ["kind", "individual"],
      ],
    );
    const company = entity(
      "ORG-EX2-AP",
      ["registrant"],
      [
        ["fn", "Example Pty"],
        ["kind", "org"],
      ],
    );

    expect(await holderIn([person, company])).toEqual({ handle: "ORG-EX2-AP", name: "Example Pty" });
  });

  it("takes the organisation of the card before the person on it, also in parts", async () => {
    const card = [
      ["fn", "Tess Case"],
      ["org", ["Example Corp", "Networks"]],
    ] as const;

    expect(await holderIn([entity(undefined, ["registrant"], card)])).toEqual({
      handle: null,
      name: "Example Corp, Networks",
    });
  });

  it("may lack everything but its class and range; members of a wrong type count as absent", async () => {
    const { objectClassName, startAddress, endAddress } = ipNetwork();

    const bare = await answerTo({ objectClassName, startAddress, endAddress });
    const odd = await answerTo(
      ipNetwork({
        name: 7,
        country: "Netherlands",
        status: "active",
        entities: [7, { roles: "registrant" }],
        events: null,
        port43: [],
      }),
    );

    expect(bare).toMatchObject({ type: "found", registry: null, network: { name: "", holder: null } });
    expect(odd).toMatchObject({
      network: { name: "", country: null, status: [], holder: null, lastChanged: null, port43: null },
    });
  });

  it.each([
    ["another class", { objectClassName: "autnum" }, /no "ip network": objectClassName/],
    ["no range", { startAddress: undefined }, /no "ip network": startAddress/],
    ["a range reversed", { endAddress: "45.9.0.0" }, "the answer's range is none: 45.10.0.0 - 45.9.0.0"],
  ])("is none with %s", async (_what, changes, reason) => {
    const answer = await answerTo(ipNetwork(changes));

    expect(answer.type === "failed" ? answer.reason : answer.type).toMatch(reason);
  });
});

describe("other answers are values", () => {
  const here = "/ip/45.10.0.7";

  it("404: nothing is registered there", async () => {
    expect(await askHere("45.10.0.7")).toEqual({ type: "not registered", url: `${server.origin}${here}` });
  });

  it("429: wait, as long as Retry-After says", async () => {
    server.paths.set(here, always(429, "", { "retry-after": "30" }));
    expect(await askHere("45.10.0.7")).toMatchObject({ type: "asked to wait", seconds: 30 });

    server.paths.set(here, always(429));
    expect(await askHere("45.10.0.7")).toMatchObject({ type: "asked to wait", seconds: null });
  });

  it("a failure with its reason: an error, a web page, an answer without end", async () => {
    const reasonOf = async () => {
      const answer = await askHere("45.10.0.7");
      return answer.type === "failed" ? answer.reason : answer.type;
    };

    server.paths.set(here, always(500));
    expect(await reasonOf()).toBe("the server answers 500");
    server.paths.set(here, always(200, "<html>"));
    expect(await reasonOf()).toBe("the answer is not JSON");
    server.paths.set(here, always(200, Buffer.alloc(2 ** 21 + 1, " ")));
    expect(await reasonOf()).toBe("the answer is larger than 2097152 bytes");
  });

  it("a failure when no answer comes in time, however it drips", async () => {
    const clock = manualClock();
    server.paths.set(here, (_request, response) => {
      response.writeHead(200);
      const drip = () => {
        clock.advance(1000);
        if (!response.destroyed) response.write("  ", () => setImmediate(drip));
      };
      drip();
    });

    const answer = await ask("45.10.0.7", { bootstrap: bootstrapFor(server.origin), clock });

    expect(answer).toMatchObject({
      type: "failed",
      reason: "no answer within 20 seconds",
    });
  });
});
