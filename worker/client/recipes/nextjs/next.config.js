/** @type {import('next').NextConfig} */
const nextConfig = { serverExternalPackages: ['@spillway/client'] }

export default nextConfig
