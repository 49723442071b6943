import { connect } from '../../storage/database.ts';
import { claimIdempotentRequest, renewIdempotentRequests } from '../../storage/queries/idempotent-requests.ts';
import { createSecretBox } from '../../storage/secrets.ts';

/**
 * Claims a request, sends the claim's id to the parent process and renews the claim until killed. Arguments: database
 * URL, lease in milliseconds, and the request as JSON. Exits with 3 if the request is already claimed.
 */
const [url, leaseMs, request] = [process.argv[2]!, Number(process.argv[3]), JSON.parse(process.argv[4]!)];
const sql = connect({ url });
const claim = await claimIdempotentRequest(sql, request, { secrets: createSecretBox(Buffer.alloc(32, 9)), leaseMs });
if (claim.outcome !== 'run') process.exit(3);
setInterval(() => void renewIdempotentRequests(sql, [claim.attempt], leaseMs), leaseMs / 10);
process.on('disconnect', () => process.exit());
process.send?.(claim.id);
