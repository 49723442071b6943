import process from 'node:process';
import { createDeliverer } from '../../actors/callbacks/deliverer.ts';
import { createDeliveryStore } from '../../actors/callbacks/delivery-store.ts';
import { parseCidrs } from '../../actors/callbacks/public-address.ts';
import { openDatabase } from '../../storage/database.ts';
import { openJobs } from '../../storage/jobs.ts';
import { createSecretBox } from '../../storage/secrets.ts';

/** Delivers callbacks until killed. Arguments: database URL, master key (hex). */
const [databaseUrl = '', masterKey = ''] = process.argv.slice(2);
const { sql } = await openDatabase({ url: databaseUrl });
const silent = { info: () => {}, warn: () => {}, error: () => {} };
const deliverer = createDeliverer({
  store: createDeliveryStore(sql),
  jobs: await (await openJobs({ databaseUrl })).open('deliveries'),
  secrets: createSecretBox(Buffer.from(masterKey, 'hex')),
  allowCidrs: parseCidrs(['127.0.0.0/8']),
  logger: silent,
});
await deliverer.start();
