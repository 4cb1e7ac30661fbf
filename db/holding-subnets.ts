/**
 * SQL for every subnet in force that holds a whole range, by indexes: the subnet that starts last before it
 * or with it, those above that one, and the few that cross others and so may hold it beside them. What
 * crosses nothing and holds the range holds that first subnet too, hence stands above it.
 */
import { formatAddress } from "#core/ip/address";
import { firstAddress, type IpRange, lastAddress } from "#core/ip/range";

/**
 * To stand behind `with recursive`: a table `holding (subnet_id)`; some of its rows may end too early, so
 * that `last_address >= $2` is to be asked of them. The parameters are `holdingParameters`.
 */
export const holdingSubnets = `
  climb as (
    (select subnet_id, parent_id
     from subnet
     where removed_in is null and first_address between $3::inet and $1::inet
     order by first_address desc, last_address asc
     limit 1)
    union
    select p.subnet_id, p.parent_id
    from climb
    join subnet p on p.subnet_id = climb.parent_id
  ),
  holding as (
    select subnet_id from climb
    union
    select subnet_id
    from subnet
    where crosses and removed_in is null
      and first_address between $3::inet and $1::inet and last_address >= $2::inet
  )`;

/** First and last address of the range, and the first of its family. */
export function holdingParameters(range: IpRange): readonly [first: string, last: string, floor: string] {
  const floor = range.family === 4 ? "0.0.0.0" : "::";
  return [formatAddress(firstAddress(range)), formatAddress(lastAddress(range)), floor];
}
