// What drizzle-kit reads for its pull: as for its push, into another folder.
module.exports = { ...require('./drizzle.config.js'), schema: undefined, out: './pulled' };
