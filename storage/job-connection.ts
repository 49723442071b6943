import { userInfo } from 'node:os';

interface JobConnectionOptions {
  databaseUrl: string;
  /** Separates installations on one server. */
  namespace: string;
  /** Connections in the pool. */
  max: number;
}

/** Connection of BullMQ's own Postgres client (pg 8), which without a user in the URL only looks at USER and PGUSER. */
export function jobConnection({ databaseUrl, namespace, max }: JobConnectionOptions) {
  return { connectionString: withUser(databaseUrl), migrate: true, schema: `${namespace}_jobs`, max };
}

/** Names the same user as the client of all other queries (postgres 3.4.9). */
function withUser(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  if (url.username !== '' || url.searchParams.has('user')) return databaseUrl;
  url.searchParams.set('user', process.env.PGUSERNAME ?? process.env.PGUSER ?? userInfo().username);
  return url.href;
}
