import { startEmbeddedPostgres } from '../../storage/embedded/postgres.ts';

// Runs an embedded Postgres until killed. Prints one JSON line with the URL or an error.
process.on('SIGINT', () => undefined);
const dataDir = process.argv[2];
if (dataDir === undefined) throw new Error('usage: embedded-owner.ts <dataDir>');
try {
  const { url } = await startEmbeddedPostgres({ dataDir });
  console.log(JSON.stringify({ url }));
  setInterval(() => undefined, 60_000);
} catch (error) {
  console.log(JSON.stringify({ error: (error as Error).message }));
}
