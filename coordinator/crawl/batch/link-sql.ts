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

const anchorOf = (url: string): string => `split_part(o.anchors, e'\\n', array_position(o.urls, ${url}))`;
