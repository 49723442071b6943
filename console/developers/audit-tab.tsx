import { Code, Text } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useMay, useSession } from '../app/session.ts';
import { useUrlSearch } from '../app/url-search.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { DeniedState } from '../parts/denied-state.tsx';
import { Filters } from '../parts/filters.tsx';
import { LoadMore } from '../parts/load-more.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { EmptyState } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { membersQuery } from '../people/queries.ts';
import { auditText as text } from '../text/developers.ts';
import { ACTIONS } from './audit-actions.ts';
import { auditFiltersOf } from './audit-filters.ts';
import { type AuditEntry, auditQuery } from './queries.ts';

export function AuditTab() {
  const may = useMay();
  if (!may.administer) return <DeniedState>{text.denied}</DeniedState>;
  return <AuditLog />;
}

function AuditLog() {
  const [search] = useUrlSearch();
  const filters = auditFiltersOf(search);
  const audit = useInfiniteQuery(auditQuery(filters));
  const people = usePeople();
  const columns = useMemo(() => columnsFor(people), [people]);
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <Filters
        isFiltered={isFiltered}
        choices={[
          {
            name: 'action',
            label: text.action,
            all: text.allActions,
            labels: new Map(ACTIONS.map((action) => [action, action])),
          },
          {
            name: 'actor',
            label: text.actor,
            all: text.allActors,
            labels: new Map([...people].map(([id, email]) => [String(id), email])),
            otherLabel: filters.actor_user_id === undefined ? undefined : text.user(filters.actor_user_id),
          },
        ]}
      />
      <Loaded query={audit}>
        {(rows) => (
          <>
            <DataTable
              label={text.list}
              columns={columns}
              rows={rows}
              rowKey={({ id }) => id}
              empty={<EmptyState title={isFiltered ? text.noMatch : text.emptyTitle} />}
            />
            <LoadMore list={audit} />
          </>
        )}
      </Loaded>
    </>
  );
}

/** Email addresses by the id of the user. */
function usePeople(): ReadonlyMap<number, string> {
  const { id, email, workspace } = useSession();
  const members = useQuery(membersQuery(workspace.id));
  return useMemo(
    () => new Map([[id, email], ...(members.data ?? []).map((member) => [member.user_id, member.email] as const)]),
    [id, email, members.data],
  );
}

function columnsFor(people: ReadonlyMap<number, string>): Column<AuditEntry>[] {
  return [
    { id: 'time', header: text.time, cell: ({ at }) => <Time at={at} /> },
    {
      id: 'action',
      header: text.action,
      cell: ({ action }) => (
        <Text size="sm" fw={600}>
          {action}
        </Text>
      ),
    },
    {
      id: 'actor',
      header: text.actor,
      visibleFrom: 'sm',
      cell: ({ actor }) => <Actor actor={actor} people={people} />,
    },
    {
      id: 'target',
      header: text.target,
      visibleFrom: 'sm',
      cell: ({ target: { type, id } }) => (
        <Text size="sm">
          {type} {id}
        </Text>
      ),
    },
    {
      id: 'details',
      header: text.details,
      visibleFrom: 'md',
      cell: ({ details }) =>
        Object.keys(details).length > 0 && <Code className="wrapped-code">{JSON.stringify(details)}</Code>,
    },
  ];
}

function Actor({ actor, people }: { actor: AuditEntry['actor']; people: ReadonlyMap<number, string> }) {
  const { user_id: userId, api_key_id: keyId } = actor;
  if (userId === null) return text.operator;
  return (
    <Text size="sm">
      {people.get(userId) ?? text.user(userId)} {keyId !== null && text.key(keyId)}
    </Text>
  );
}
