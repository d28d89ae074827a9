// Makes writes to the standard output of a test file wait until they are done, so that no result is lost: the forced exit of a test file
// drops what its pipe to the runner did not take yet (nodejs/node#64833). Node has no public API for it.
// @ts-check
if (process.env.NODE_TEST_CONTEXT) Reflect.get(process.stdout, '_handle')?.setBlocking?.(true)
