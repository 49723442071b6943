import { userInfo } from 'node:os';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { jobConnection } from '../../storage/job-connection.ts';

const userOf = (databaseUrl: string) => {
  const { connectionString } = jobConnection({ databaseUrl, namespace: 'tandem', max: 1 });
  const { username, searchParams } = new URL(connectionString);
  return username || searchParams.get('user');
};

describe('the connection of the job queues', () => {
  beforeEach(() => {
    for (const name of ['PGUSERNAME', 'PGUSER', 'USER']) vi.stubEnv(name, undefined);
  });
  afterEach(() => void vi.unstubAllEnvs());

  it('uses the user of the URL', () => {
    expect(userOf('postgres://tandem:secret@db.example/tandem')).toBe('tandem');
    expect(userOf('postgres:///tandem?host=/run/postgresql&user=tandem')).toBe('tandem');
  });

  it('uses the user of the operating system if neither URL nor environment names one', () => {
    expect(userOf('postgres://db.example/tandem')).toBe(userInfo().username);
    expect(userOf('postgres:///tandem?host=/run/postgresql')).toBe(userInfo().username);
  });

  it('uses PGUSER if the URL names none', () => {
    vi.stubEnv('PGUSER', 'ops');
    expect(userOf('postgres://db.example/tandem')).toBe('ops');
  });
});
