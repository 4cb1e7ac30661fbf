/** A redirect chain followed in one process, with every hop under the rules of a leased URL. */
import { expect, it } from "vitest";
import { followOne } from "../support/fetch-one.ts";
import { type Handle, html, startSite } from "../support/origin.ts";

const to = (location: string): Handle => {
  return (_request, response) => void response.writeHead(302, { location }).end();
};

it("reports every hop with its robots verdict and result, across sites", async () => {
  const there = await startSite((_request, response) => html(response, "<title>Arrived</title>"));
  const here = await startSite(to(`${there.url}/end`), "User-agent: *\nAllow: /start\nDisallow: /private");

  const { hops, ending } = await followOne(`${here.url}/start`);

  expect(ending).toBeNull();
  expect(hops.map((hop) => hop.url)).toEqual([`${here.url}/start`, `${there.url}/end`]);
  expect(hops[0]).toMatchObject({ robots: { allowed: true }, result: { outcome: { type: "redirected" } } });
  expect(hops[1]?.result.page?.title).toBe("Arrived");
  expect(there.requests).toEqual(["GET /robots.txt", "GET /end"]);
});

it("ends when a hop's robots.txt forbids it", async () => {
  const there = await startSite((_request, response) => html(response, "<p>x"), "User-agent: *\nDisallow: /");
  const here = await startSite(to(`${there.url}/end`));

  const { hops } = await followOne(`${here.url}/start`);

  expect(hops.at(-1)).toMatchObject({
    robots: { allowed: false },
    result: { outcome: { type: "refused-by-robots" } },
  });
  expect(there.requests).toEqual(["GET /robots.txt"]);
});

it.each(["http://10.0.0.1/", "http://169.254.169.254/latest/", "http://[::ffff:10.0.0.1]/", "http://0/"])(
  "never connects to %s",
  async (location) => {
    const here = await startSite(to(location));

    const { hops } = await followOne(`${here.url}/start`);

    expect(hops).toHaveLength(2);
    expect(hops[1]?.result.outcome.type).toBe("refused-address");
  },
);

it("stops after five redirects", async () => {
  const here = await startSite((request, response) => {
    const hop = Number(/\d+/.exec(request.url ?? "")?.[0] ?? 0);
    response.writeHead(302, { location: `/${hop + 1}` }).end();
  });

  const { hops } = await followOne(`${here.url}/0`);

  expect(hops).toHaveLength(6);
  expect(hops.at(-1)?.result.outcome).toMatchObject({ code: "too-many-redirects" });
});

it("stops when the chain returns to an earlier page", async () => {
  const here = await startSite((request, response) => {
    response.writeHead(302, { location: request.url === "/a" ? "/b" : "/a" }).end();
  });

  const { hops } = await followOne(`${here.url}/a`);

  expect(here.requests).toEqual(["GET /robots.txt", "GET /a", "GET /b"]);
  expect(hops.at(-1)?.result.outcome).toMatchObject({ code: "redirect-loop" });
});
