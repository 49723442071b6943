import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PublicCall } from '../../actors/call-view.ts';
import { parseWav } from '../../media/wav.ts';
import { untilTruthy } from '../eventually.ts';
import { hasS3Server, type S3Server, startS3Server } from '../storage/s3/s3-server.ts';
import { callOf, cleanUp, dataFolder, environment, startReady, townFor } from './ready-server.ts';
import { startServerProcess } from './server-process.ts';

afterEach(cleanUp);

describe.skipIf(!hasS3Server)('npm start with an S3 store', () => {
  let store: S3Server;
  let env: Record<string, string>;
  let bucket: string;
  let endpoint: string;
  beforeAll(async () => {
    store = await startS3Server();
    const settings = await store.createBucket();
    bucket = settings.bucket;
    endpoint = settings.endpoint!;
    env = {
      S3_ENDPOINT: endpoint,
      S3_BUCKET: bucket,
      S3_PREFIX: 'tandem/',
      S3_ACCESS_KEY_ID: settings.accessKeyId,
      S3_SECRET_ACCESS_KEY: settings.secretAccessKey,
    };
  });
  afterAll(() => store[Symbol.asyncDispose]());

  it('exits with one line that names the error, without the secret', async () => {
    const wrong = { ...env, S3_BUCKET: 'no-such-bucket' };
    const server = startServerProcess(environment(await dataFolder(), wrong));
    expect(await server.exited).toBe(1);
    const lines = server
      .output()
      .trim()
      .split('\n')
      .filter((line) => !line.startsWith('{'));
    expect(lines).toEqual([expect.stringMatching(/^S3 bucket no-such-bucket at .* does not exist/)]);
    expect(server.output()).not.toContain(env.S3_SECRET_ACCESS_KEY);
  });

  it('stores recordings and voice samples there, and plays them from there', async () => {
    const ready = await startReady(await dataFolder(), env);
    const peers = await townFor(ready);
    const { call } = await ready.api.post<{ call: PublicCall }>('/dialer/click2call', {
      agent_number: peers.agent.user,
      customer_number: peers.customer.user,
      record: true,
    });
    await peers.customer.untilReceived(({ packets }) => packets > 100);
    await ready.api.post(`/dialer/click2call/${call.call_id}/hangup`, {});
    await untilTruthy(async () => (await callOf(ready, call.call_id)).recording_available, 'the recording is stored');
    const key = `tandem/recordings/${ready.workspaceId}/${(await callOf(ready, call.call_id)).recording_id}.wav`;
    await untilTruthy(async () => (await store.keysIn(bucket)).includes(key), 'the recording is in the bucket');

    const mint = async () => {
      const path = `/dialer/click2call/${call.call_id}/recording`;
      return (await ready.api.post<{ recording: { playback_url: string } }>(path)).recording.playback_url;
    };
    await untilTruthy(async () => (await mint()).startsWith(`${endpoint}/${bucket}/`), 'the store plays it');
    const played = await fetch(await mint());
    expect(played.headers.get('content-type')).toBe('audio/wav');
    expect(parseWav(Buffer.from(await played.arrayBuffer())).channels).toBe(2);

    const voice = async () => {
      const voices = await ready.api.get<{ voice_id: string }[]>('/voices?model=fast');
      return (await ready.api.get<{ sample_url: string | null }>(`/voices/${voices[0]!.voice_id}`)).sample_url;
    };
    // Null until it has been spoken, which takes longer than a request waits on a busy machine.
    const sampleUrl = await untilTruthy(async () => {
      const url = await voice();
      return url?.startsWith(`${endpoint}/${bucket}/tandem/`) && url;
    }, 'the store plays a sample');
    expect((await fetch(sampleUrl)).headers.get('content-type')).toBe('audio/mpeg');
    expect(ready.server.output()).not.toContain(env.S3_SECRET_ACCESS_KEY);
    expect(ready.server.output()).not.toContain('X-Amz-Signature');
  });
});
