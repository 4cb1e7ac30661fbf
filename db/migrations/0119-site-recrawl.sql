-- Tokens of scope site-recrawl: have pages fetched again of sites that name the token in DNS (coordinator/submissions).
-- Old coordinators: they run on beside new ones, and refuse such tokens what they do not know.
-- needs: nothing

-- Up Migration

alter table operator_token
  drop constraint operator_token_scopes_check,
  add constraint operator_token_scopes_check check (
    cardinality(scopes) > 0
    and scopes <@ '{read,url-write,site-recrawl,metrics-read,fleet-read,fleet-write,registry-write,policy-write,audit-read,access-write}'
  );

-- Down Migration

delete from operator_token where scopes = '{site-recrawl}';
update operator_token set scopes = array_remove(scopes, 'site-recrawl');
alter table operator_token
  drop constraint operator_token_scopes_check,
  add constraint operator_token_scopes_check check (
    cardinality(scopes) > 0
    and scopes <@ '{read,url-write,metrics-read,fleet-read,fleet-write,registry-write,policy-write,audit-read,access-write}'
  );
