/** Ten thousand crawlers: no page of the navigation becomes too large for a browser or a connection. */
import { expect, it } from "vitest";
import { everyOperation } from "#coordinator/room-operations";
import { navigationOf } from "#coordinator/web/navigation";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { seedWorld } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const mostKilobytes = 400;

it("every page fits into 400 kB of HTML, whatever the crawlers are called", async () => {
  const database = await testDatabase();
  await seedWorld(database.pool);
  await database.pool.query(
    `insert into crawler (name, state, place, country, latitude, longitude, probe_methods, connected_at, last_seen_at)
     select 'node-' || n, case when n % 10 = 0 then 'offline' else 'online' end, '<b>אב' || repeat('x', n % 200), 'GR',
       (n * 37 % 1700) / 10.0 - 85, (n * 53 % 3600) / 10.0 - 180, '{head}', '2026-03-01T11:00:00Z', '2026-03-01T11:59:58Z'
     from generate_series(1, 10000) n`,
  );
  const app = webServer(database, { parts: await everyPart(database) });
  const { headers } = await signIn(database, "operator");
  const tabs = navigationOf(await everyOperation()).flatMap(({ entries }) =>
    entries.flatMap((entry) => entry.tabs ?? [entry]),
  );
  const bad: unknown[] = [];
  for (const { path } of tabs) {
    const { statusCode, body } = await app.inject({
      url: path,
      headers: { ...headers, accept: "text/html" },
    });
    const kilobytes = Math.round(Buffer.byteLength(body) / 1000);
    if (path === "/") expect(body).toContain("9,700 crawlers with fewer subnets");
    if (statusCode !== 200 || kilobytes > mostKilobytes || body.includes("<b>א")) {
      bad.push({ path, statusCode, kilobytes });
    }
  }
  await app.close();
  await database.close();

  expect(tabs.length).toBeGreaterThan(30);
  expect(bad).toEqual([]);
});
