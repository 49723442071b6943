import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { connect, openDatabase } from '../../storage/database.ts';
import { externalIsReachable, externalServer } from './test-database.ts';

describe.skipIf(!(await externalIsReachable()))('database without permission to create extensions', () => {
  it('fails with a one-line error that names the commands for an administrator', async () => {
    const server = externalServer();
    const database = await server.createDatabase();
    const { sql } = database;
    const role = `tandem_test_${randomBytes(4).toString('hex')}`;
    const name = `${role}_db`;
    await sql.unsafe(`create role ${role} login password 'test'`);
    await sql.unsafe(`create database ${name} template template0`);
    const url = new URL(database.url);
    url.pathname = `/${name}`;
    try {
      const grants = connect({ url: url.href, max: 1 });
      await grants.unsafe(`grant create on schema public to ${role}`);
      await grants.end({ timeout: 1 });
      url.username = role;
      url.password = 'test';
      await expect(openDatabase({ url: url.href, max: 1 })).rejects.toMatchObject({
        code: 'STORAGE_UNAVAILABLE',
        message: expect.stringMatching(
          /^[^\n]*may not create the extension pg_trgm[^\n]*create extension unaccent;[^\n]*$/,
        ),
      });
    } finally {
      await sql.unsafe(`drop database ${name} with (force)`);
      await sql.unsafe(`drop role ${role}`);
      await database.drop();
      await server.close();
    }
  });
});
