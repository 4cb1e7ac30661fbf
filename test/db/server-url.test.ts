/** Database URLs with several hosts in each of libpq's forms, and invalid ones. */
import { describe, expect, it } from "vitest";
import { readServerUrl, withoutPassword, withSearchPath } from "#db/server-url";

const placesOf = (url: string) =>
  readServerUrl(url)
    .servers.map(({ host, port }) => `${host} ${port}`)
    .join(", ");
const refusal = (url: string): string => {
  try {
    readServerUrl(url);
  } catch (error) {
    expect(error).toMatchObject({ code: "NC_USAGE" });
    return (error as Error).message;
  }
  throw new Error(`${url} was taken`);
};

describe("several hosts", () => {
  it.each([
    ["postgresql://me@h1:5432,h2:5433/d", "h1 5432, h2 5433"],
    [
      "postgres://me:s%2Fecret@10.0.0.1,[2001:db8::1]:6000/d?sslmode=disable",
      "10.0.0.1 null, 2001:db8::1 6000",
    ],
    ["postgresql:///d?host=/run/a,/run/b&port=5432,5433", "/run/a 5432, /run/b 5433"],
    ["postgresql://me@%2Frun%2Fa:1,h:2/d", "/run/a 1, h 2"],
    ["postgresql:///d?host=h1,h2&port=6000", "h1 6000, h2 6000"],
    ["postgresql://me@/d?host=/run/pg", "/run/pg null"],
    ["postgresql://h/d", "h null"],
  ])("%s leads to %s", (url, places) => {
    expect(placesOf(url)).toBe(places);
  });

  it("one server's connection string is node-postgres' own, without what is for libpq", () => {
    const url = readServerUrl(
      "postgresql://me:pw@h1:5432,h2:5433/d?target_session_attrs=read-write&connect_timeout=2&options=-c%20geqo%3Doff%20-c%20search_path%3Dworld%2Cpublic",
    );
    const { searchParams, username, pathname } = new URL(url.connectionString(url.servers[1]!));

    expect([username, pathname, Object.fromEntries(searchParams)]).toEqual([
      "me",
      "/d",
      { host: "h2", port: "5433", options: "-c geqo=off" },
    ]);
    expect([url.searchPath, url.timeoutMs, url.wantsPrimary]).toEqual(["world,public", 2000, true]);
  });

  it("the URL for psql names the schema and leads to the primary, with or without a host", () => {
    expect(withSearchPath("postgresql://me@/d?host=/run/pg", "world")).toMatch(
      /^postgresql:\/\/me@localhost\/d\?host=/,
    );
    expect(withSearchPath("postgresql://me@h1:5432,h2:5433/d", "world")).toBe(
      "postgresql://me@h1:5432,h2:5433/d?options=-c%20search_path%3Dworld%2Cpublic&target_session_attrs=read-write",
    );
  });

  it("the password is not printed", () => {
    expect(withoutPassword("postgresql://me:secret@h1:1,h2:2/d?password=secret")).toBe(
      "postgresql://me@h1:1,h2:2/d",
    );
  });
});

describe("a faulty URL", () => {
  it.each([
    ["postgresql://h1:5432,/d", "host 2 of 2 is empty"],
    ["postgresql:///d?host=h1,,h3", "host 2 of 3 is empty"],
    ["postgresql://h1:5432,h2:70000/d", 'port "70000" of host "h2": must be a number from 1 to 65535'],
    ["postgresql://h1:0/d", 'port "0" of host "h1"'],
    ["postgresql:///d?host=h1,h2&port=5432x", 'port "5432x" of host "h1"'],
    ["postgresql:///d?host=h1,h2&port=1,2,3", "names 3 ports for 2 hosts: one for each, or one for all"],
    ["postgresql://h1/d?port=1,2", "names 2 ports for one host"],
    ["postgresql://h1,2001:db8::1/d", '"2001:db8::1" is not host:port (IPv6 stands in brackets)'],
    ["postgresql://h1,h2/d?target_session_attrs=writer", "target_session_attrs=writer is not known"],
    ["postgresql://h1,h2/d?target_session_attrs=any", "may lead to a standby"],
    ["postgresql://h1/d?target_session_attrs=standby", "may lead to a standby"],
    ["postgresql://h1,h2/d?connect_timeout=soon", "connect_timeout=soon: must be a number of seconds"],
    ["h1,h2/d", "is not of the form postgresql://"],
  ])("%s", (url, words) => {
    expect(refusal(url)).toContain(words);
  });

  it("is shown without the password", () => {
    expect(refusal("postgresql://me:secret@h1:99999,h2/d")).not.toContain("secret");
  });
});
