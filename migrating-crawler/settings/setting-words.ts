/**
 * The settings file as installed: every setting with its effect, unit and default, behind a `#`. A value is the default, or,
 * where the text says so, an example because the default is unset. A test compares it with the schema. Uncommenting the header
 * of a table turns its feature on.
 */
export const settingsText = `# Settings of this Nearcrawl crawler. Nobody but you can change them: the coordinator can raise no limit.
#
# A line that begins with '#' is not in force: its default is. Take the '#' away, change the value, save. The crawler
# looks at this file while it runs and takes a change within seconds; it says so in its log, and of a mistake it says
# the line and goes on under the settings from before. A line belongs to the [table] above it, whose '#' goes, too.

# ------------------------------------------------------------------- what is never touched, and the network

# Domains that are never contacted, with everything below them. Default: none.
# denyDomains = [ "example.org" ]

# What this crawler may be given: hosts in one of these sets of domains and languages. Default: any host.
# domainSets = [ ".gr not shop.gr", "lang:el" ]

# Networks that are never contacted: an address, a/prefix or first-last. Default: none.
# denyRanges = [ "203.0.113.0/24", "2001:db8::/32" ]

# Private and other special networks that may be contacted all the same, with a port or ports if only those are
# meant. Their ports may be probed, too; elsewhere 80 and 443 alone, and those of URLs that are being crawled.
# Default: none; the crawler refuses all such networks.
# allowRanges = [ "10.1.0.0/16", "192.168.7.5:8080" ]

# The proxy that sites are reached through: http://host:port (CONNECT) or socks5://host:port, with user:password@
# if it asks for them. Default: none. Takes a restart.
# proxy = "http://proxy.example.org:3128"

# The way to the coordinator: "as-sites" (through \`proxy\`, if there is one), "none", or another proxy.
# Default: "as-sites". Takes a restart.
# coordinatorProxy = "as-sites"

# Further coordinators of the same fleet, for when the first cannot be reached; the same certificate or authorities are
# asked of them. A coordinator tells of the others by itself. Default: none. Takes a restart.
# otherCoordinatorUrls = [ "wss://second.search.example/crawler" ]

# DNS servers to ask. Default: the system's. Takes a restart.
# resolvers = [ "192.0.2.53:53" ]

# Whether sites are contacted over IPv6, too. Default: where this machine has a route for it, and no proxy is set.
# Takes a restart.
# ipv6 = false

# The address that sites see, when it is not the one that the coordinator sees. Default: not stated. Takes a restart.
# publicAddress = "198.51.100.7"

# Whom sites may reach at your place: added as a comment to the User-Agent, which the coordinator states.
# Default: not set. Takes a restart.
# contact = "abuse@example.org"

# Whether this address is in the list on the coordinator's page by which sites verify that a request is ours.
# Default: true. Takes a restart.
# listAddress = true

# Milliseconds between two requests to one host, at least; its robots.txt may ask for more. Default: 1000.
# Takes a restart.
# politenessFloorMs = 1000

# Less than politenessFloorMs: a host that answers well and quickly is asked faster step by step, until it is left alone for
# this long between two requests. Default: not set, no host is asked faster than politenessFloorMs. Takes a restart.
# politenessFastestMs = 250

# A host is left alone for at least this many times as long as its last answer took. Default: 5. Takes a restart.
# responseTimeFactor = 5

# Requests at a time to one address, whatever hosts are behind it. Default: 1. Takes a restart.
# requestsPerAddress = 1

# /.well-known/tdmrep.json of a site is asked for, once a day, where at least this many of its URLs are to be fetched at
# once; 1: always, 0: never. Default: 10. Takes a restart.
# tdmFileFromUrls = 10

# How the way to a site may be measured: an HTTP HEAD request, a TCP connection, an ICMP echo. Default: all three.
# probeMethods = [ "head", "connect", "icmp" ]

# A PEM file with certificates to trust for sites, besides the usual ones. Default: none. Takes a restart.
# certificateFile = "/etc/ssl/certs/our-authority.pem"

# A PEM file: the coordinator is trusted by this certificate alone. Default: not set. Takes a restart.
# coordinatorCertificateFile = "/etc/nearcrawl/coordinator.pem"

# ------------------------------------------------------------------------------------------------ limits
[limits]

# Pages per day, at most; robots.txt and the like count, too. Default: 1000000.
# pagesPerDay = 1000000

# Bytes per day, at most: everything that the crawler's connections carry, both ways. TCP and IP add 3 to 5 % to it.
# Default: 53687091200 (50 GiB). At the limit downloads are broken off, and the day's end is waited for.
# bytesPerDay = 53687091200

# The same in a calendar month. Default: no limit but the day's.
# bytesPerMonth = 500000000000

# The same in each second, in units of 1024 bytes. Default: no limit. Downloads under way are slowed down.
# kilobytesPerSecond = 500

# Hosts that are dealt with at a time, each with one request at a time at most. Default: 32. No more are begun, whatever
# the coordinator sends.
# concurrentHosts = 32

# Measurements of the way to sites and to other crawlers in any second, whatever the coordinator asks for: probes,
# connections, echoes. One address is measured three times a second at most, with 20 connections or requests in all,
# and as many at a time as \`concurrentHosts\`, up to 16. 0: none. Default: 50.
# probesPerSecond = 50

# Connections open at a time, the one to the coordinator included. Default: 512.
# openConnections = 512

# Processor time, in processors: 0.5 is half of one processor, 2 is two. Measured over seconds, all threads of the
# crawler together. Default: no limit (its low priority gives way to everything else).
# cpuShare = 0.5

# Bytes of memory of the process (RSS). From four fifths of it on fewer hosts are crawled, and a request begins only where
# 10 MiB are left for it. With 512 MiB or more, or no limit, some 30 MB of it spare processor time (counts from the
# next start). Default: no limit.
# memoryBytes = 536870912

# Bytes on disk of everything in the crawler's folder. At the limit nothing more is fetched. Default: no limit but
# the two below.
# diskBytes = 2147483648

# Bytes on disk of the results that wait for the coordinator, of those. Default: 268435456 (256 MiB).
# spoolBytes = 268435456

# Threads that read pages, besides the main one. Default: 1. Takes a restart.
# extractionThreads = 1

# The time zone of the hours below, and of the day's and the month's end. Default: the system's.
# timeZone = "Europe/Athens"

# Scheduling priority as in nice(1): 19 gives way to everything else, 0 is usual. Default: 19. A system lets only
# an administrator's process go back to a higher one (a smaller number) without a restart.
# priority = 19

# Whether public addresses in the networks of this machine's own interfaces, and the one that it is seen from, may be
# contacted. Default: false.
# ownNetwork = false

# Whether the way to a site may be measured by ICMP echo (ping). Default: true.
# icmp = true

# When the crawler may contact sites. A span over midnight belongs to the day that it begins on; several are
# separated by commas; "always" and "never" say what they say. Once the table is there, a day without a line has
# no hours. Default: no table, at any time.
# [limits.hours]

# monday = "22:00-06:00"
# tuesday = "22:00-06:00"
# wednesday = "22:00-06:00"
# thursday = "22:00-06:00"
# friday = "22:00-06:00"
# saturday = "always"
# sunday = "always"

# Only while the machine has nothing else to do. What a system does not tell (Linux tells all three, others less) holds
# nothing back; \`nearcrawl crawler status\` says what is not told. Default: no table, the crawler does not look.
# [limits.onlyWhenIdle]

# Load average of the last minute per processor, without the crawler's own part. Default: 0.5.
# loadPerProcessor = 0.5

# Not while the machine runs on its battery. Default: true.
# onMainsPower = true

# Minutes since anybody who is logged in touched a terminal; whoever sits at the screen counts as active.
# 0: users are not looked at. Default: 10.
# usersAwayMinutes = 10

# ---------------------------------------------------------------------------------------------- releases
# What of the crawler's new releases is taken. All of them are signed, and one that is not well gives way to the one
# before it by itself. A release that was revoked is ended whatever stands here.
[releases]

# "follow" takes a release when it is offered, "delay" some hours later, "pin" stays with one version, "ask" takes
# only what \`accept\` lists. Default: "follow".
# policy = "follow"

# For "delay": hours after the offer. Default: 24.
# delayHours = 24

# For "pin": the version. Default: not set, what runs stays.
# pin = "1.4.0"

# For "ask": the versions that may be taken. Default: none.
# accept = [ "1.5.0" ]

# Versions that are never taken. Default: none.
# refuse = [ "1.4.1" ]

# ---------------------------------------------------------------------------------------------- status
# \`nearcrawl crawler status\` needs none of this. Takes a restart.
[status]

# A page that shows the same at http://127.0.0.1:7412/, to browsers on this machine alone (to everybody who is
# logged in on it). Only the link that \`status\` prints can pause and resume. Where the port is taken, one of the next 20
# is. 0: no page. Default: 7412.
# port = 7412

# --------------------------------------------------------------------------------- time-outs
# In milliseconds. They take a restart.
[timeouts]

# To connect, TLS included. Default: 10000.
# connectMs = 10000

# Until an answer begins. Default: 20000.
# firstByteMs = 20000

# Of silence within an answer. Default: 10000.
# idleMs = 10000

# For the whole answer. Default: 60000.
# totalMs = 60000

# --------------------------------------------------------------------------------------------- fetched
# The list of what was asked of whom, and when, which \`fetched\` reads: URL, time, status, address. It is for you alone, to
# answer whoever complains.
[fetched]

# How long it is kept. 0: no list. Default: 30.
# days = 30

# Bytes of its files together; the oldest is removed. Default: 268435456 (256 MiB).
# maxBytes = 268435456

# Keeps everything that is fetched on this machine, too, as WARC files. Default: no table, nothing is kept.
# Takes a restart.
# [warc]

# Where they are kept. Has no default.
# folder = "/var/lib/nearcrawl/warc"

# Bytes of all files together. Default: 10737418240 (10 GiB).
# maxBytes = 10737418240

# At that: "stop", or "remove-oldest" removes the oldest file. Default: "stop".
# whenFull = "stop"

# Bytes after which another file is begun. Default: 1000000000.
# fileBytes = 1000000000

# Where this machine stands, for maps. Default: no table, not stated. Takes a restart.
# [place]

# Of the town.
# name = "Athens"

# Two capital letters (ISO 3166).
# country = "GR"

# Degrees, north is positive.
# latitude = 37.98

# Degrees, east is positive.
# longitude = 23.73
`;

/** The tables and settings of the text, in order. The first table has no name. */
export const settingTables: readonly { readonly path: readonly string[]; readonly names: string[] }[] =
  settingsText.split("\n").reduce<{ path: readonly string[]; names: string[] }[]>(
    (tables, line) => {
      const path = tablePath(line);
      const name = settingName(line);
      if (path !== null) tables.push({ path, names: [] });
      if (name !== null) tables.at(-1)?.names.push(name);
      return tables;
    },
    [{ path: [], names: [] }],
  );

export function tablePath(line: string): readonly string[] | null {
  return /^(?:# )?\[([\w.]+)\]$/.exec(line)?.[1]?.split(".") ?? null;
}

export function settingName(line: string): string | null {
  return /^# (\w+) = /.exec(line)?.[1] ?? null;
}
