import { afterAll, afterEach, beforeAll, beforeEach, describe } from 'vitest';
import {
  externalIsReachable,
  externalServer,
  openEmbeddedServer,
  type TestDatabase,
  type TestServer,
} from './test-database.ts';

const externalUp = await externalIsReachable();

/** Runs a suite on the embedded Postgres and on the external one, with a database per test. */
export function onEveryServer(name: string, suite: (database: () => TestDatabase) => void): void {
  describe(`${name}, on the embedded Postgres`, () => withServer(openEmbeddedServer, suite));
  describe.skipIf(!externalUp)(`${name}, on the Postgres server at TANDEM_TEST_DATABASE_URL`, () =>
    withServer(async () => externalServer(), suite),
  );
}

function withServer(open: () => Promise<TestServer>, suite: (database: () => TestDatabase) => void): void {
  let server: TestServer;
  let database: TestDatabase;
  beforeAll(async () => {
    server = await open();
  });
  afterAll(async () => {
    await server.close();
  });
  beforeEach(async () => {
    database = await server.createDatabase();
  });
  afterEach(async () => {
    await database.drop();
  });
  suite(() => database);
}
