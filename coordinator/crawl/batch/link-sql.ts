/** SQL that finds links to a page in table out_link. Through the view `link`, the whole table would be read. */

const mostOwnPages = 5000;

/**
 * SQL: up to `most` links to a page (host_hash, url_hash, anchor, nofollow), from the index out_link_to for other
 * hosts and from the host's own pages. `host` and `url` are SQL of the target's hashes.
 */
export function linksTo(host: string, url: string, most: number): string {
  const columns = `o.host_hash, o.url_hash, ${anchorOf(url)} as anchor, ${isNofollow(url)} as nofollow`;
  return `(
    (select ${columns} from out_link o where ${linksBeyond("o", url)} limit ${most})
    union all
    (select ${columns}
     from (select * from out_link where host_hash = ${host} limit ${mostOwnPages}) o
     where ${url} = any (o.urls[:o.own_links])
     limit ${most})
    limit ${most}
  )`;
}

/** SQL: row `o` of out_link links to the URL of another host. Matches the index. */
export const linksBeyond = (o: string, url: string): string =>
  `${o}.urls[${o}.own_links + 1:] @> array[${url}]`;

/** SQL: the link in row `o` of out_link to the URL. */
export const isNofollow = (url: string): string =>
  `coalesce(array_position(o.urls, ${url}) = any (o.nofollows), false)`;

/** At most this many links are read to count the hosts they come from. */
const linksCounted = 1000;

/**
 * SQL: one row for the URL with `hosts`, how many other hosts link to it, and `anchors`, what their links call it, one of each host,
 * the most frequent first. Nofollow links are not recommendations.
 */
export const linkingHosts = (url: string, anchorCharacters: number): string => `(
    select coalesce(sum(hosts), 0)::int as hosts,
      coalesce(array_agg(anchor order by hosts desc, anchor) filter (where anchor <> ''), '{}') as anchors
    from (
      select anchor, count(*) as hosts
      from (
        select distinct on (host_hash) anchor
        from (
          select o.host_hash, left(${anchorOf(url)}, ${anchorCharacters}) as anchor
          from out_link o
          where ${linksBeyond("o", url)} and not ${isNofollow(url)}
          limit ${linksCounted}
        ) calling
        order by host_hash, anchor = '', anchor
      ) by_host
      group by anchor
    ) by_anchor
  )`;

const anchorOf = (url: string): string => `split_part(o.anchors, e'\\n', array_position(o.urls, ${url}))`;
