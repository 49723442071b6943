/** Wallet of the API; `ledger.ts` moves the money. */
export { walletOf } from '../ledger.ts';
