import { connect } from '../../storage/database.ts';
import { claimIdempotentRequest, renewIdempotentRequests } from '../../storage/queries/idempotent-requests.ts';
import { createSecretBox } from '../../storage/secrets.ts';

/** Claims a request and renews the claim until killed. */
const [url, leaseMs, request] = [process.argv[2]!, Number(process.argv[3]), JSON.parse(process.argv[4]!)];
const sql = connect({ url });
const claim = await claimIdempotentRequest(sql, request, { secrets: createSecretBox(Buffer.alloc(32, 9)), leaseMs });
if (claim.outcome !== 'run') process.exit(3);
setInterval(() => void renewIdempotentRequests(sql, [claim.attempt], leaseMs), leaseMs / 10);
process.on('disconnect', () => process.exit());
process.send?.(claim.id);
