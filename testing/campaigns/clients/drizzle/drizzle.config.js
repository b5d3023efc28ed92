// What drizzle-kit reads: the schema, and where the server is.
module.exports = {
  dialect: 'mysql', schema: './schema.mjs', out: './generated',
  dbCredentials: {
    host: process.env.CLIENT_HOST, port: Number(process.env.CLIENT_PORT), user: process.env.CLIENT_USER,
    password: process.env.CLIENT_PASSWORD || undefined, database: process.env.CLIENT_DATABASE,
  },
};
